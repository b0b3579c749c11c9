/** One window of VS Code in the browser. */
import { Chat } from "./chat.mjs";
import { until } from "./until.mjs";

const QUICK_INPUT = ".quick-input-widget input[type=text]";

export class Window {
  /** `axe`: the text of axe-core. */
  constructor(page, url, axe) {
    this.page = page;
    this.url = url;
    this.axe = axe;
  }

  /** Loads the window; again, where it was loaded already. */
  async load() {
    await this.page.goto(this.url);
    await this.#ready();
  }

  async reload() {
    await this.page.reload();
    await this.#ready();
  }

  async #ready() {
    await this.page.locator(".monaco-workbench .part.statusbar").waitFor();
  }

  /**
   * From now on this window has the focus while it is in front and at no other time, which it is told: else each of
   * several windows is made to believe that it has it.
   */
  async ownFocus() {
    const devTools = await this.page.context().newCDPSession(this.page);
    await devTools.send("Emulation.setFocusEmulationEnabled", { enabled: false });
  }

  /** Lets this window be seen, of several: what is hidden draws nothing. */
  async front() {
    await this.page.bringToFront();
  }

  /** Our view, brought to the front where it is not there. */
  async chat({ ready = true } = {}) {
    await this.front();
    const ours = this.page.locator('.activitybar .action-item:has(.action-label[aria-label^="agentd"])');
    await until("our view is in front", async () => {
      if (/\bchecked\b/.test(await ours.getAttribute("class"))) return true;
      // While a window that was reloaded still brings it back, this may just have hidden it.
      await ours.click({ timeout: 1000 });
      return false;
    });
    const chat = new Chat(this);
    if (ready) await chat.ready();
    return chat;
  }

  /** Opens a file of the workspace by its name. */
  async openFile(name) {
    await this.#pick(name, name);
    await this.editor(name).locator(".view-line").first().waitFor();
  }

  /** Runs a command by its title in the palette. */
  async command(title, { asks = false } = {}) {
    await this.#pick(`>${title}`, title);
    if (asks) return; // it has a quick pick of its own
    await this.page.locator(QUICK_INPUT).waitFor({ state: "hidden" });
  }

  /** Chooses a colour theme by its label; the view follows in its own time. */
  async theme(label) {
    await this.#pick(">Preferences: Color Theme", "Preferences: Color Theme");
    const input = this.page.locator(QUICK_INPUT);
    await until("the themes are offered", async () => (await input.getAttribute("placeholder"))?.includes("Theme"));
    await this.#pick(label, label, false);
    await input.waitFor({ state: "hidden" });
  }

  /** Types into the palette, which it opens where it may, and takes what is offered with a label. */
  async #pick(typed, label, mayOpen = true) {
    const { page } = this;
    const input = page.locator(QUICK_INPUT);
    const row = page.locator(".quick-input-list .monaco-list-row", { hasText: label }).first();
    await until(`the palette offers ${label}`, async () => {
      if (mayOpen && !(await input.isVisible())) await page.keyboard.press("F1");
      await input.fill(typed, { timeout: 2000 });
      await row.waitFor({ timeout: 2000 }).catch(async (error) => {
        if (mayOpen) await page.keyboard.press("Escape"); // what is offered is found out when it is opened
        throw error;
      });
      return true;
    });
    await row.click();
  }

  /** The editor that shows a file. */
  editor(name) {
    return this.page.locator(`.editor-instance[aria-label*="${name}"], .editor-instance:has([aria-label*="${name}"])`);
  }

  /** What is to be seen of the text in an editor. */
  async text(name) {
    const lines = await this.editor(name).locator(".view-line").evaluateAll((rows) =>
      rows.sort((a, b) => parseFloat(a.style.top) - parseFloat(b.style.top)).map((row) => row.textContent));
    return lines.join("\n").replaceAll("\u00a0", " ");
  }

  async shows(name, text) {
    await until(`the editor of ${name} shows ${text}`, async () => (await this.text(name)).includes(text),
      { seen: () => this.text(name) });
  }

  /** Types at the end of a line, counted from 1, of the file in an editor. */
  async typeAt(name, line, text) {
    await this.cursorAt(name, line);
    await this.page.keyboard.press("End");
    await this.page.keyboard.insertText(text);
  }

  /** Puts the cursor at the beginning of a line, counted from 1. */
  async cursorAt(name, line) {
    await this.editor(name).locator(".view-line").first().click();
    await this.press("Control+Home", ...Array(line - 1).fill("ArrowDown"));
  }

  /** One step of the editor's undo. */
  async undo(name) {
    await this.editor(name).locator(".view-line").first().click();
    await this.press("Control+Z");
  }

  async press(...keys) {
    for (const key of keys) await this.page.keyboard.press(key);
  }

  /** Hides our view behind VS Code's own of files. */
  async hideChat() {
    await this.page.locator('.activitybar .action-label[aria-label^="Explorer"]').click();
    await this.page.locator(".explorer-folders-view").waitFor();
  }

  /** Trusts the workspace, as the user does. */
  async trust() {
    await this.page.locator(".statusbar").getByText("Restricted Mode").click();
    await this.page.locator(".workspace-trust-editor").getByRole("button", { name: "Trust", exact: true }).click();
    await this.page.locator(".statusbar").getByText("Restricted Mode").waitFor({ state: "hidden" });
  }

  /** A notification or a dialog of VS Code with a text in it. */
  notification(text) {
    return this.page.locator(".notification-toast, .monaco-dialog-box", { hasText: text });
  }

  /** Clicks a link in the notification with a text. */
  async follow(text, link) {
    await this.notification(text).getByText(link, { exact: true }).click();
  }

  async answer(text, button) {
    await this.notification(text).getByRole("button", { name: button }).click();
  }
}
