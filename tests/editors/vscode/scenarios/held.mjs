import { scenario } from "../driver/scenario.mjs";
import { until } from "../driver/until.mjs";

async function openSession(window, title) {
  await window.command("agentd: Open a Session…", { asks: true });
  const row = window.page.locator(".quick-input-list .monaco-list-row", { hasText: title });
  await row.first().click();
}

scenario("a session that another window has can be read, is forked to go on with, and goes on here when it is free", async (stage) => {
  const first = await stage.open();
  const one = await first.chat();
  await one.send("The first window's.");
  (await stage.model.asked()).ends("Yours.");
  await one.shows("Yours.");
  const second = await stage.open();
  const two = await second.chat();
  await openSession(second, "The first window's.");
  await two.shows("Yours.");
  await second.notification("in use elsewhere").waitFor();
  await second.answer("in use elsewhere", "Fork");
  await two.send("And mine?");
  (await stage.model.asked()).ends("Yours, too.");
  await two.shows("Yours, too.");
  await two.idle();
  await openSession(second, "The first window's.");
  await two.shows("Yours.");
  await first.page.close();
  await until("the second window has the session", async () => {
    await two.prompt.fill("Now here.");
    await two.prompt.press("Enter");
    return stage.model.unheard > 0;
  });
  (await stage.model.asked()).ends("Here it is.");
  await two.shows("Here it is.");
});
