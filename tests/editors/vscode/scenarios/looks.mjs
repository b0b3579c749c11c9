import { join } from "node:path";
import { inNewest, scenario } from "../driver/scenario.mjs";
import { scene } from "../driver/scene.mjs";
import { expect } from "../driver/until.mjs";

const THEMES = {
  dark: ["Dark Modern", "vscode-dark"],
  light: ["Light Modern", "vscode-light"],
  "high-contrast": ["Dark High Contrast", "vscode-high-contrast"],
  "high-contrast-light": ["Light High Contrast", "vscode-high-contrast-light"],
};

async function looksWell(stage, window, chat, what) {
  const faults = [];
  for (const [name, [theme, kind]] of Object.entries(THEMES)) {
    await window.theme(theme);
    await chat.frame.locator(`body.${kind}`).waitFor();
    await window.page.screenshot({ path: join(stage.folder, `${what}-${name}.png`) });
    for (const fault of await chat.faults()) faults.push(`${name}: ${JSON.stringify(fault, null, 1)}`);
  }
  expect(faults.length === 0, `axe-core finds in the view:\n${faults.join("\n")}`);
}

scenario("a conversation with a question can be read by everybody, in every kind of theme", async (stage) => {
  const { window, chat } = await scene(stage);
  await looksWell(stage, window, chat, "question");
});

inNewest("a conversation that has ended can be read by everybody, in every kind of theme", async (stage) => {
  const { window, chat } = await scene(stage);
  await chat.allow();
  (await stage.model.asked()).ends("It **runs**, and says `Hello, world`.");
  await chat.idle();
  await looksWell(stage, window, chat, "end");
});

inNewest("a view in which nothing was said yet can be read by everybody, in every kind of theme", async (stage) => {
  const window = await stage.open();
  const chat = await window.chat();
  await chat.frame.getByRole("heading").first().waitFor();
  await looksWell(stage, window, chat, "empty");
});
