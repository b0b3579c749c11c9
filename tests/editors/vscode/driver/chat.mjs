/** The chat view of a window, as its user sees it: by roles and accessible names. */
import { until } from "./until.mjs";

const WEBVIEW = 'iframe.webview[src*="extensionId=agentd.agentd"]';

export class Chat {
  constructor(window) {
    this.window = window;
    this.frame = window.page.frameLocator(WEBVIEW).frameLocator("#active-frame");
  }

  get log() {
    return this.frame.getByRole("log");
  }

  get prompt() {
    return this.frame.getByRole("textbox", { name: "Prompt" });
  }

  /** The question that stands open. */
  get permission() {
    return this.frame.getByRole("region", { name: "Permission" });
  }

  /** The prompts that wait. */
  get queue() {
    return this.frame.getByRole("region", { name: "Queue" });
  }

  /** Cards of tool calls in a state, in the words for it. */
  tool(state) {
    return this.log.locator(`[data-state="${state}"]`);
  }

  button(name) {
    return this.frame.getByRole("button", { name, exact: true });
  }

  async ready() {
    await this.prompt.waitFor();
  }

  /** Types a prompt and sends it, once it can be sent. */
  async send(text) {
    await this.window.front();
    await this.prompt.fill(text);
    await until("the prompt can be sent", () => this.button("Send").isEnabled());
    await this.prompt.press("Enter");
  }

  /** Allows what is asked about, this once. */
  async allow() {
    await this.permission.getByRole("button", { name: "Allow once" }).first().click();
  }

  /** Waits until nothing runs. */
  async idle() {
    await this.button("Send").waitFor();
    await this.button("Stop").waitFor({ state: "hidden" });
  }

  /** Begins a session, whose box is another one than the last one's. */
  async beginSession() {
    await this.window.command("agentd: New Session");
    const shown = this.frame.getByRole("combobox", { name: "Session", exact: true });
    await until("the session is new", async () => (await shown.innerText()).includes("New session"));
  }

  /** Chooses in a picker of the head: Folder, Model, Mode. */
  async choose(picker, name) {
    await this.frame.getByRole("combobox", { name: picker, exact: true }).click();
    await this.frame.getByRole("option", { name }).click();
  }

  /** What axe-core finds in the view that is serious or worse: `[{id, impact, help, where: [html]}]`. */
  async faults() {
    const frame = await (await this.frame.locator("#app").elementHandle()).ownerFrame();
    await frame.evaluate(this.window.axe);
    const { violations } = await frame.evaluate(async () => {
      // The view lets VS Code's side bar through, which axe-core, inside of it, takes for white.
      const { style } = document.documentElement;
      style.background = "var(--vscode-sideBar-background)";
      const found = await window.axe.run(document, { resultTypes: ["violations"] });
      style.background = "";
      return found;
    });
    return violations.filter(({ impact }) => ["serious", "critical"].includes(impact)).map(({ id, impact, help, nodes }) =>
      ({ id, impact, help, where: nodes.map(({ html, failureSummary }) => `${html}\n${failureSummary}`) }));
  }

  async text() {
    return this.log.innerText();
  }

  async shows(text) {
    await this.window.front();
    await until(`the chat shows ${text}`, async () => (await this.text()).includes(text), { seen: () => this.text() });
  }
}
