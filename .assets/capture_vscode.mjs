/** The pictures that `capture_vscode.py` takes, played by the driver of the tests (tests/editors/vscode/driver). */
import { join } from "node:path";
import { scenario } from "../tests/editors/vscode/driver/scenario.mjs";
import { scene } from "../tests/editors/vscode/driver/scene.mjs";

const SIZE = { width: 1120, height: 720 };
const SETTINGS = {
  "workbench.colorTheme": "Default Dark Modern",
  "workbench.secondarySideBar.defaultVisibility": "hidden",
  "editor.minimap.enabled": false,
};

/** A picture of the window, or of one part of it. */
async function taken({ page }, path, part) {
  await page.mouse.move(SIZE.width / 2, SIZE.height - 60); // where nothing shows a hover
  await page.locator(".monaco-hover:visible").waitFor({ state: "hidden" });
  const clip = part && (await page.locator(part).boundingBox());
  await page.screenshot({ path, ...(clip ? { clip } : {}) });
}

/** Gives the side bar more room, by its edge. */
async function widened({ page }) {
  await page.setViewportSize(SIZE);
  const bar = await page.locator(".part.sidebar").boundingBox();
  const [edge, middle] = [bar.x + bar.width, bar.y + bar.height / 2];
  await page.mouse.move(edge, middle);
  await page.mouse.down();
  await page.mouse.move(edge + 90, middle, { steps: 5 });
  await page.mouse.up();
}

scenario("pictures", async (stage) => {
  const { window, chat } = await scene(stage, SETTINGS);
  await widened(window);
  await window.shows("greet.py", "farewell(name: str)");
  await taken(window, join(stage.folder, "vscode.png"));
  await taken(window, join(stage.folder, "question.png"), ".part.sidebar");
  await chat.allow();
  const items = ["Add the missing types", "Run the file"].map((text, at) => ({ id: `${at + 1}`, text, status: "completed" }));
  (await stage.model.asked()).calls("todo_write", { items }).ends();
  (await stage.model.asked()).ends("It **runs**, and says `Hello, world`. `farewell` has its types now; nothing else changed.");
  await chat.idle();
  await window.page.getByText("Revert file").waitFor();
  await taken(window, join(stage.folder, "vscode-review.png"));
  await taken(window, join(stage.folder, "changes.png"), ".part.sidebar");
});
