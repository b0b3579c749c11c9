import { inNewest } from "../driver/scenario.mjs";
import { until } from "../driver/until.mjs";

async function openSession(window, title) {
  await window.command("agentd: Open a Session…", { asks: true });
  const row = window.page.locator(".quick-input-list .monaco-list-row", { hasText: title });
  await row.first().click();
}

/** Sends a prompt, which is refused as long as the session is the other window's. */
async function sentOnceItIsOurs(stage, chat, text) {
  await until("the session takes a prompt", async () => {
    // The box is emptied when the prompt was taken, and keeps the text of one that was refused.
    if (stage.model.unheard > 0 || (await chat.log.innerText()).includes(text)) return true;
    await chat.prompt.fill(text);
    await chat.prompt.press("Enter");
    await chat.log.getByText(text).waitFor({ timeout: 5000 }).catch(() => undefined);
    return false;
  });
}

inNewest("a session that another window has can be read, is forked to go on with, and goes on here when it is free", async (stage) => {
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
  await sentOnceItIsOurs(stage, two, "And mine?");
  (await stage.model.asked()).ends("Yours, too.");
  await two.shows("Yours, too.");
  await two.idle();
  await openSession(second, "The first window's.");
  await two.shows("Yours.");
  await first.page.close();
  await sentOnceItIsOurs(stage, two, "Now here.");
  (await stage.model.asked()).ends("Here it is.");
  await two.shows("Here it is.");
});
