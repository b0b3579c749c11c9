import { inNewest, scenario } from "../driver/scenario.mjs";
import { expect, until } from "../driver/until.mjs";

const TEXT = "one\ntwo\nthree\nfour\nfive\nsix\nseven\neight\nnine\nten\n";

async function reads(stage, name) {
  (await stage.model.asked()).calls("read_file", { file_path: name }).ends();
}

async function edits(stage, name, ...pairs) {
  const edits = pairs.map(([old_string, new_string]) => ({ old_string, new_string }));
  (await stage.model.asked()).calls("edit_file", { file_path: name, edits }).ends();
}

/** A lens of ours in an editor. */
const lens = (window, title) => window.page.locator(".codelens-decoration", { hasText: title }).first().waitFor();

scenario("an edit shows in the unsaved editor, and its undo leaves what was typed", async (stage) => {
  stage.configure({ mode: "edit", trusted: [stage.path()] });
  const window = await stage.open({ files: { "a.txt": TEXT } });
  const chat = await window.chat();
  await window.openFile("a.txt");
  await window.typeAt("a.txt", 1, " typed");
  await chat.send("Shout.");
  await reads(stage, "a.txt");
  await edits(stage, "a.txt", ["three", "THREE"]);
  (await stage.model.asked()).ends("It is louder.");
  await chat.shows("It is louder.");
  await window.shows("a.txt", "THREE");
  await window.shows("a.txt", "one typed");
  expect(stage.read("a.txt") === TEXT, "the file on disk was changed");
  await window.undo("a.txt");
  await window.shows("a.txt", "three");
  await window.shows("a.txt", "one typed");
});

inNewest("an edit for a text that the user has changed meanwhile is refused where the user sees it", async (stage) => {
  stage.configure({ mode: "ask", trusted: [stage.path()] });
  const window = await stage.open({ files: { "a.txt": TEXT } });
  const chat = await window.chat();
  await window.openFile("a.txt");
  await chat.send("Shout.");
  await reads(stage, "a.txt");
  await edits(stage, "a.txt", ["three", "THREE"]);
  await chat.permission.waitFor();
  await window.typeAt("a.txt", 3, ", as I want it");
  await chat.allow();
  const told = await stage.model.asked();
  told.ends("You were faster.");
  await chat.shows("You were faster.");
  await window.shows("a.txt", "three, as I want it");
  expect(!(await window.text("a.txt")).includes("THREE"), "the user's words were written over");
  await chat.frame.locator('[data-state="failed"]').first().waitFor();
  expect(stage.read("a.txt") === TEXT, "the file on disk was changed");
});

inNewest("one of two changed places is reverted, the other stays", async (stage) => {
  stage.configure({ mode: "edit", trusted: [stage.path()] });
  const window = await stage.open({ files: { "a.txt": TEXT } });
  const chat = await window.chat();
  await window.openFile("a.txt");
  await chat.send("Shout.");
  await reads(stage, "a.txt");
  await edits(stage, "a.txt", ["two", "TWO"], ["nine", "NINE"]);
  (await stage.model.asked()).ends("It is louder.");
  await chat.idle();
  await window.shows("a.txt", "NINE");
  await window.cursorAt("a.txt", 2);
  await window.command("agentd: Revert the Change at the Cursor");
  await window.shows("a.txt", "two");
  await window.shows("a.txt", "NINE");
});

scenario("an accepted place stays accepted when the window is loaded again, and typing in it is no change of the agent's", async (stage) => {
  stage.configure({ mode: "edit", trusted: [stage.path()] });
  const window = await stage.open({ files: { "a.txt": TEXT } });
  const chat = await window.chat();
  await window.openFile("a.txt");
  await chat.send("Shout.");
  await reads(stage, "a.txt");
  await edits(stage, "a.txt", ["two", "TWO"], ["nine", "NINE"]);
  (await stage.model.asked()).ends("It is louder.");
  await chat.idle();
  await lens(window, "agentd changed 2 places");
  await window.cursorAt("a.txt", 2);
  await window.command("agentd: Accept the Change at the Cursor");
  await lens(window, "agentd changed one place");
  await window.command("File: Save");
  await until("the file is saved", () => stage.read("a.txt").includes("NINE"));
  await window.reload();
  await window.openFile("a.txt");
  await lens(window, "agentd changed one place");
  await window.typeAt("a.txt", 5, " typed");
  await window.typeAt("a.txt", 9, " typed");
  await lens(window, "Revert with what changed since");
  await lens(window, "agentd changed one place");
  await window.cursorAt("a.txt", 9);
  await window.command("agentd: Revert the Change at the Cursor");
  await window.shows("a.txt", "NINE typed");
  await window.answer("was changed after agentd", "Revert Both");
  await window.shows("a.txt", "nine");
  await window.shows("a.txt", "five typed");
  await window.shows("a.txt", "TWO");
  await window.undo("a.txt");
  await window.shows("a.txt", "NINE typed");
});

inNewest("what two windows on a workspace accept stays accepted in both", async (stage) => {
  stage.configure({ mode: "edit", trusted: [stage.path()] });
  const first = await stage.open({ files: { "a.txt": TEXT } });
  const chat = await first.chat();
  await first.openFile("a.txt");
  await chat.send("Shout.");
  await reads(stage, "a.txt");
  await edits(stage, "a.txt", ["two", "TWO"], ["five", "FIVE"], ["nine", "NINE"]);
  (await stage.model.asked()).ends("It is louder.");
  await chat.idle();
  await lens(first, "agentd changed 3 places");
  await first.command("File: Save");
  await until("the file is saved", () => stage.read("a.txt").includes("NINE"));
  const second = await stage.open();
  await second.openFile("a.txt");
  await lens(second, "agentd changed 3 places");
  for (const each of [first, second]) await each.ownFocus();
  await first.front();
  await first.cursorAt("a.txt", 2);
  await first.command("agentd: Accept the Change at the Cursor");
  await lens(first, "agentd changed 2 places");
  await second.front();
  await lens(second, "agentd changed 2 places");
  await second.page.locator(".codelens-decoration a", { hasText: "Accept" }).last().click();
  await lens(second, "agentd changed one place");
  await first.front();
  await lens(first, "agentd changed one place");
  await first.reload();
  await first.openFile("a.txt");
  await lens(first, "agentd changed one place");
});

inNewest("what a prompt did is taken back as a whole", async (stage) => {
  stage.configure({ mode: "edit", trusted: [stage.path()] });
  const window = await stage.open({ files: { "a.txt": TEXT } });
  const chat = await window.chat();
  await chat.send("Shout.");
  await reads(stage, "a.txt");
  await edits(stage, "a.txt", ["two", "TWO"]);
  (await stage.model.asked()).ends("It is louder.");
  await chat.idle();
  await until("the file is changed", () => stage.read("a.txt").includes("TWO"));
  await window.command("agentd: Take the Last Prompt Back");
  await until("the file is as it was", () => stage.read("a.txt") === TEXT);
});
