import { existsSync } from "node:fs";
import { inNewest, scenario } from "../driver/scenario.mjs";
import { expect, until } from "../driver/until.mjs";

async function asking(stage, command) {
  const window = await stage.open();
  const chat = await window.chat();
  await chat.send("Make it.");
  (await stage.model.asked()).calls("bash", { command }).ends();
  return { window, chat };
}

inNewest("a question shows the whole command, and runs it once it is allowed", async (stage) => {
  const { chat } = await asking(stage, "touch made && echo 'made it'");
  await chat.permission.getByText("touch made && echo 'made it'").first().waitFor();
  expect(!existsSync(stage.path("made")), "the command ran before it was allowed");
  await chat.allow();
  await until("the command has run", () => existsSync(stage.path("made")));
  (await stage.model.asked()).ends("It is made.");
  await chat.shows("It is made.");
  await chat.idle();
});

inNewest("a rejected command does not run, and the model is told why", async (stage) => {
  const { chat } = await asking(stage, "touch made");
  await chat.permission.getByRole("button", { name: "Reject and say what to do instead…" }).click();
  await chat.permission.getByRole("textbox", { name: "What to do instead" }).fill("use make instead");
  await chat.button("Reject with this").click();
  const next = await stage.model.asked();
  expect(next.heard("tool").includes("use make instead"), `the model heard ${next.heard("tool")}`);
  next.ends("I use make.");
  await chat.shows("I use make.");
  expect(!existsSync(stage.path("made")), "the command ran");
});

scenario("a question while the view is hidden is a notification, which answers it", async (stage) => {
  const window = await stage.open({ files: { "a.txt": "one\n" } });
  const chat = await window.chat();
  await chat.send("Make it.");
  const turn = await stage.model.asked();
  await window.hideChat();
  turn.calls("bash", { command: "touch made" }).ends();
  await window.notification("touch made").waitFor();
  await window.follow("touch made", "Allow once");
  await until("the command has run", () => existsSync(stage.path("made")));
  (await stage.model.asked()).ends("It is made.");
  const shown = await window.chat();
  await shown.shows("It is made.");
});
