import { inNewest, scenario } from "../driver/scenario.mjs";
import { expect } from "../driver/until.mjs";

scenario("the demo repairs its project, from the first click on", async (stage) => {
  stage.configure({ model: null });
  const window = await stage.open();
  const chat = await window.chat();
  await chat.button("Try the demo without a model").click();
  for (const asked of ["Command", /^Changes in/, "Command"]) {
    await chat.permission.getByLabel(asked).first().waitFor();
    await chat.allow();
  }
  await chat.shows("Fixed: all five tests pass.");
  await chat.idle();
});

inNewest("an answer streams: its first half is shown while the model holds the second back", async (stage) => {
  const window = await stage.open();
  const chat = await window.chat();
  await chat.send("What is in here?");
  const turn = await stage.model.asked();
  turn.says("First half, ");
  await chat.shows("First half,");
  await chat.button("Stop").waitFor();
  turn.ends("second half.");
  await chat.shows("First half, second half.");
  await chat.idle();
});

inNewest("a steer is said in the running prompt", async (stage) => {
  const window = await stage.open();
  const chat = await window.chat();
  await chat.send("Look around.");
  const turn = await stage.model.asked();
  turn.says("I look.");
  await chat.shows("I look.");
  await chat.prompt.fill("Only the tests, please.");
  await chat.button("Steer").click();
  turn.calls("list_directory", { path: "." }).ends();
  const next = await stage.model.asked();
  expect(next.heard().includes("Only the tests, please."), `the model heard ${next.heard()}`);
  next.ends("Only the tests, then.");
  await chat.shows("Only the tests, then.");
  await chat.idle();
});

inNewest("a queued prompt waits in sight and runs after the running one", async (stage) => {
  const window = await stage.open();
  const chat = await window.chat();
  await chat.send("First.");
  const first = await stage.model.asked();
  first.says("One");
  await chat.shows("One");
  await chat.prompt.fill("Second.");
  await chat.button("Queue").click();
  await chat.queue.getByText("Second.").waitFor();
  first.ends(".");
  const second = await stage.model.asked();
  second.ends("Two.");
  await chat.shows("Two.");
  await chat.idle();
  await chat.queue.waitFor({ state: "hidden" });
});

inNewest("Stop ends the answer in its midst, and what was said stays", async (stage) => {
  const window = await stage.open();
  const chat = await window.chat();
  await chat.send("Count.");
  const turn = await stage.model.asked();
  turn.says("One, two, ");
  await chat.shows("One, two,");
  await chat.button("Stop").click();
  await turn.hungUp;
  await chat.idle();
  await chat.shows("One, two,");
  await chat.send("And on?");
  (await stage.model.asked()).ends("Three.");
  await chat.shows("Three.");
});

inNewest("a model that fails is told, with the reason", async (stage) => {
  stage.configure({ model: stage.script("failing", [
    { content: [], error: { kind: "auth", message: "The key is not valid.", status: 401 } },
  ]) });
  const window = await stage.open();
  const chat = await window.chat();
  await chat.send("Hello?");
  await chat.shows("The key is not valid.");
  await chat.idle();
});
