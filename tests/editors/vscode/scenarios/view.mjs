import { inNewest } from "../driver/scenario.mjs";

inNewest("the view opens from its icon", async (stage) => {
  const window = await stage.open({ files: { "a.txt": "one\n" } });
  await window.chat();
});

inNewest("a file can be opened and typed in", async (stage) => {
  const window = await stage.open({ files: { "a.txt": "one\ntwo\n" } });
  await window.openFile("a.txt");
  await window.typeAt("a.txt", 1, " and more");
  await window.shows("a.txt", "one and more");
});
