import { existsSync } from "node:fs";
import { all } from "../driver/processes.mjs";
import { inNewest, scenario } from "../driver/scenario.mjs";
import { expect, until } from "../driver/until.mjs";

/** A session in which the model has called for a command. */
async function calling(stage, command) {
  const window = await stage.open();
  const chat = await window.chat();
  await chat.send("Run it.");
  (await stage.model.asked()).calls("bash", { command }).ends();
  await chat.permission.waitFor();
  return { window, chat };
}

/** The next prompt is answered, and the model hears what became of the command. */
async function goesOn(stage, chat) {
  await chat.idle();
  await chat.send("And now?");
  const next = await stage.model.asked();
  next.ends("Now nothing.");
  await chat.shows("Now nothing.");
  return next.heard("tool");
}

inNewest("Stop ends a command in its midst, and nothing of it lives on", async (stage) => {
  const mark = `sleep 271828${process.pid}`;
  const lives = () => all().some(({ command }) => command === mark);
  const { chat } = await calling(stage, `echo it began; (${mark} &) ; ${mark}`);
  await chat.allow();
  await chat.tool("running").getByText("it began").first().waitFor();
  await until("the command has its children", () => all().filter(({ command }) => command === mark).length === 2);
  await chat.button("Stop").click();
  await chat.tool("stopped").waitFor();
  await until("all of the command has ended", () => !lives());
  const heard = await goesOn(stage, chat);
  expect(heard.includes("abort"), `the model heard ${heard}`);
});

inNewest("Stop takes an open question back, and what it was about never runs", async (stage) => {
  const { chat } = await calling(stage, "touch made");
  await chat.button("Stop").click();
  await chat.permission.waitFor({ state: "hidden" });
  const heard = await goesOn(stage, chat);
  expect(heard.includes("abort"), `the model heard ${heard}`);
  expect(!existsSync(stage.path("made")), "the command ran");
});

scenario("the status bar tells of work and of a question, and stops it", async (stage) => {
  const { window, chat } = await calling(stage, "touch made");
  await window.hideChat();
  const bar = window.page.locator(".statusbar");
  await bar.getByText("agentd asks").waitFor();
  await bar.getByRole("button", { name: "Stop what agentd runs" }).click();
  await bar.getByText("agentd asks").waitFor({ state: "hidden" });
  await bar.getByRole("button", { name: "Stop what agentd runs" }).waitFor({ state: "hidden" });
  await window.chat();
  await chat.send("Count.");
  const turn = await stage.model.asked();
  turn.says("One, ");
  await bar.getByText("agentd works").waitFor();
  await bar.getByRole("button", { name: "Stop what agentd runs" }).click();
  await turn.hungUp;
  await chat.idle();
});
