/** What a scenario plays on: workspaces, windows of one server of VS Code, and a model. */
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { basename, dirname, join, relative } from "node:path";
import { below, daemons, hosts } from "./processes.mjs";
import { Connection } from "./ssh.mjs";
import { until } from "./until.mjs";
import { Window } from "./window.mjs";

const KEPT_SECONDS = 15; // as much as a machine that is busy takes to end what it does not keep

export class Stage {
  #windows = [];
  #said = [];

  /**
   * `house`: {browser, server: {url, pid, data, config, python, home?, ssh?}, model, modelUrl, axe}; `folder` is this
   * scenario's own. A server on another machine has its files in a `home`: {user: whose, there: its path on it, here:
   * where this process sees it}; with `ssh` it is reached, and started where it does not run, through such a connection.
   */
  constructor(house, folder) {
    this.#house = house;
    this.folder = folder;
    this.model = house.model;
    const { home, ssh } = house.server;
    this.#workspace = home ? join(home.there, basename(folder)) : join(folder, "workspace");
    /** The connection to a server that is reached by SSH. */
    this.connection = ssh ? new Connection(ssh) : null;
    mkdirSync(this.here(), { recursive: true });
    this.configure({});
  }

  #workspace;

  #house;

  /** Writes agentd's configuration; daemons that start from now on read it. `facts` are of each of the `models`. */
  configure({ model = "live/live", mode = "ask", trusted = [], more = "", models = ["live"], facts = {} }) {
    const { config } = this.#house.server;
    writeFileSync(config, [
      ...(model ? [`model = ${JSON.stringify(model)}`] : []),
      `mode = ${JSON.stringify(mode)}`,
      `trusted = ${JSON.stringify(trusted)}`,
      more,
      "[providers.live]",
      'api = "openai-chat"',
      `base_url = ${JSON.stringify(this.#house.modelUrl)}`,
      ...models.flatMap((name) => [
        `[providers.live.models.${name}]`,
        ...Object.entries({ context_window: 100000, ...facts }).map(([fact, value]) => `${fact} = ${value}`),
      ]),
      "",
    ].join("\n"));
  }

  /** A script of the scripted provider; gives the name of the model that plays it. */
  script(name, responses) {
    const path = join(this.folder, `${name}.json`);
    writeFileSync(path, JSON.stringify(responses));
    return `scripted/${path}`;
  }

  /** Who works on another machine. */
  get user() {
    return this.#house.server.home.user;
  }

  /** The path of something in the workspace, as agentd and VS Code know it. */
  path(...parts) {
    return join(this.#workspace, ...parts);
  }

  /** Where this process sees that. */
  here(...parts) {
    const { home } = this.#house.server;
    return home ? join(home.here, relative(home.there, this.path(...parts))) : this.path(...parts);
  }

  read(...parts) {
    return readFileSync(this.here(...parts), "utf8");
  }

  write(files) {
    for (const [name, text] of Object.entries(files)) {
      mkdirSync(dirname(this.here(name)), { recursive: true });
      writeFileSync(this.here(name), text);
    }
  }

  /**
   * Opens a window on the workspace, with these files in it and these settings of the user. With `trusted` the
   * question of trust is not asked; without, VS Code opens in Restricted Mode. `workspace` names another folder or
   * a .code-workspace file, `machine` are settings of the machine for this scenario.
   */
  async open({ files = {}, settings = {}, trusted = true, workspace = this.path(), machine = {} } = {}) {
    await this.connection?.make();
    this.write(files);
    this.#setMachine(machine);
    writeFileSync(join(this.#house.server.data, "User", "settings.json"), JSON.stringify({
      "security.workspace.trust.enabled": !trusted,
      "security.workspace.trust.startupPrompt": "never",
      ...settings,
    }));
    const kind = workspace.endsWith(".code-workspace") ? "workspace" : "folder";
    const url = `${this.#house.server.url}?${kind}=${encodeURIComponent(workspace)}`;
    const page = await this.#house.browser.newPage();
    page.on("console", (message) => this.#said.push(`${message.type()}: ${message.text()}`));
    page.on("pageerror", (error) => this.#said.push(`error: ${error.stack}`));
    page.on("dialog", (dialog) => dialog.accept().catch(() => undefined));
    const window = new Window(page, url, this.#house.axe);
    this.#windows.push(window);
    await window.load();
    return window;
  }

  #machine = null;

  #setMachine(settings) {
    const path = join(this.#house.server.data, "Machine", "settings.json");
    this.#machine ??= readFileSync(path, "utf8");
    writeFileSync(path, JSON.stringify({ ...JSON.parse(this.#machine), ...settings }));
  }

  /** What the stand-in for the Python extension does, see there; a change of its interpreter is another selection. */
  python(said) {
    writeFileSync(this.#house.server.python, JSON.stringify(said));
  }

  /** How often the Python extension was started. */
  pythonAsked() {
    const path = `${this.#house.server.python}.asked`;
    return existsSync(path) ? readFileSync(path, "utf8").split("\n").length - 1 : 0;
  }

  /** The command line of the agentd under test. */
  command() {
    return JSON.parse(readFileSync(join(this.#house.server.data, "Machine", "settings.json"), "utf8"))["agentd.command"];
  }

  /** All that VS Code's extension hosts have logged of agentd. */
  logs() {
    const folder = join(this.#house.server.data, "logs");
    return readdirSync(folder, { recursive: true }).filter((name) => name.endsWith("agentd.log"))
      .map((name) => readFileSync(join(folder, name), "utf8")).join("");
  }

  /** The processes of agentd that windows have started. */
  daemons() {
    return daemons(this.#house.server.pid).map((each) => each.pid);
  }

  /** The processes of the machine that the server runs on, or those below the server. */
  processes() {
    return below(this.#house.server.pid);
  }

  /** Keeps a picture of each window and all that was said for somebody who looks for a fault. */
  async keep() {
    for (const [number, { page }] of this.#windows.entries()) {
      await page.screenshot({ path: join(this.folder, `window-${number + 1}.png`), timeout: 5000 }).catch((error) =>
        this.#said.push(`no picture: ${error.message}`));
    }
    writeFileSync(join(this.folder, "console.log"), this.#said.join("\n"));
  }

  /** Closes all windows and waits until nothing of them runs any more. */
  async clear() {
    try {
      await this.connection?.make();
      await this.#closeWindows();
    } finally {
      await this.connection?.cut();
    }
  }

  async #closeWindows() {
    for (const { page } of this.#windows.filter((one) => !one.page.isClosed())) {
      await page.goto("about:blank"); // a window that is left says so to its server; one in the background may not
      await page.close();
    }
    this.model.reset();
    if (this.#machine !== null) this.#setMachine({});
    await this.#nothingRuns();
    for (const name of ["", ".asked"]) rmSync(this.#house.server.python + name, { force: true });
    rmSync(join(this.#house.server.data, "User", "globalStorage", "agentd.agentd", "agentd"), { recursive: true, force: true }); // one click's
    rmSync(join(this.folder, "scratch"), { recursive: true, force: true });
  }

  /**
   * VS Code keeps the extension host of a window that went before it was wholly up, so that it could come back.
   * Such a host is ended here; whatever ends it, its daemon has to end with it.
   */
  async #nothingRuns() {
    const { pid } = this.#house.server;
    const ended = () => hosts(pid).length === 0 && daemons(pid).length === 0;
    const seen = () => JSON.stringify([...hosts(pid), ...daemons(pid)]);
    try {
      await until("the extension hosts end with their windows", ended, { seconds: KEPT_SECONDS });
    } catch {
      for (const host of hosts(pid)) process.kill(host.pid);
      await until("the daemons end with their extension hosts", ended, { seen });
    }
  }
}
