import { inNewest, scenario } from "../driver/scenario.mjs";
import { expect, until } from "../driver/until.mjs";

async function midRun(stage) {
  const window = await stage.open();
  const chat = await window.chat();
  await chat.send("Look around.");
  (await stage.model.asked()).calls("list_directory", { path: "." }).ends("I look.");
  const turn = await stage.model.asked();
  turn.says("There is ");
  await chat.shows("There is");
  return { window, chat, turn };
}

async function once(chat, text) {
  const count = async () => (await chat.text()).split(text).length - 1;
  await until(`${text} is shown once`, async () => (await count()) === 1, { seen: () => chat.text() });
}

scenario("a window that is reloaded in the midst of a prompt shows all of it once, and goes on by one click", async (stage) => {
  const { window, turn } = await midRun(stage);
  await window.reload();
  await turn.hungUp;
  const chat = await window.chat();
  await once(chat, "Look around.");
  await once(chat, "I look.");
  await chat.button("Go on").click();
  const next = await stage.model.asked();
  expect(next.body.messages.filter(({ role }) => role === "user").length === 1, "the prompt was said again");
  next.ends("All is there.");
  await once(chat, "All is there.");
  await once(chat, "Look around.");
  await chat.idle();
});

inNewest("a daemon that is killed is told and started again, and the session goes on", async (stage) => {
  const { chat } = await midRun(stage);
  const [pid] = stage.daemons();
  process.kill(pid, "SIGKILL");
  await until("another daemon runs", () => stage.daemons().length === 1 && stage.daemons()[0] !== pid);
  await once(chat, "Look around.");
  await chat.button("Go on").click();
  (await stage.model.asked()).ends("All is there.");
  await once(chat, "All is there.");
  await chat.idle();
});

scenario("a window that is closed ends its daemon", async (stage) => {
  const { window } = await midRun(stage);
  expect(stage.daemons().length === 1, "there is not one daemon");
  await window.page.close();
  await until("the daemon has ended", () => stage.daemons().length === 0);
});
