import { join } from "node:path";
import { scenario } from "../driver/scenario.mjs";
import { expect, until } from "../driver/until.mjs";

/** Takes one of what a quick pick offers. */
async function take(page, label) {
  const row = page.locator(".quick-input-list .monaco-list-row", { hasText: label }).first();
  await until(`${label} is offered`, async () => {
    await page.locator(".quick-input-widget input[type=text]").fill(label, { timeout: 2000 });
    await row.waitFor({ timeout: 2000 });
    return true;
  });
  await row.click();
}

/** Our view beside the explorer, as many have it; gives it back to its place afterwards, as a browser remembers that. */
async function beside(window, work) {
  await window.command("View: Move View", { asks: true });
  await take(window.page, "Chat");
  await take(window.page, "New Secondary Side Bar Entry");
  try {
    await window.command("View: Show Explorer");
    await window.page.locator(".explorer-folders-view").waitFor();
    await work();
  } finally {
    await window.command("View: Reset View Locations");
    await window.page.locator('.activitybar .action-label[aria-label^="agentd"]').waitFor();
    await window.chat();
  }
}

scenario("a file dragged from the explorer onto the view with Shift held is attached, and its words go to the model", async (stage) => {
  const window = await stage.open({ files: { "drop-me.txt": "This text was dropped.\n" } });
  const { page } = window;
  const chat = await window.chat();
  await beside(window, async () => {
    await chat.ready();
    const row = page.locator(".explorer-folders-view .monaco-list-row", { hasText: "drop-me.txt" });
    const from = await row.boundingBox();
    const to = await page.locator('iframe.webview[src*="extensionId=agentd.agentd"]').boundingBox();
    const { mouse, keyboard } = page;
    await mouse.move(from.x + 60, from.y + from.height / 2);
    await mouse.down();
    await mouse.move(from.x + 90, from.y + from.height / 2 + 4, { steps: 4 });
    await keyboard.down("Shift");
    try {
      await mouse.move(to.x + to.width / 2, to.y + to.height / 2, { steps: 12 });
      await page.screenshot({ path: join(stage.folder, "dragging.png") });
      await chat.frame.getByText("Drop to attach").waitFor();
    } finally {
      await mouse.up();
      await keyboard.up("Shift");
    }
    await chat.frame.getByRole("list", { name: "Attachments" }).getByText("drop-me.txt").waitFor();
    await chat.send("What does it say?");
    const turn = await stage.model.asked();
    expect(JSON.stringify(turn.body.messages).includes("This text was dropped."), "the model is not told the file");
    turn.ends("That it was dropped.");
    await chat.idle();
  });
});
