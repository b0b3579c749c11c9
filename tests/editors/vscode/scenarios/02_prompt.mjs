import { scenario } from "../driver/scenario.mjs";

scenario("a prompt is answered as the model speaks", async (stage) => {
  const window = await stage.open({ files: { "a.txt": "one\n" } });
  const chat = await window.chat();
  await chat.send("What is in here?");
  const turn = await stage.model.asked();
  turn.says("One ");
  await chat.shows("One");
  turn.ends("file.");
  await chat.shows("One file.");
});
