/** As much of `vscode` as the host's rooms need that are tested without one. */
export class Disposable {
  constructor(private readonly end: () => void) {}
  static from(...all: { dispose(): void }[]): Disposable {
    return new Disposable(() => all.forEach((each) => each.dispose()));
  }
  dispose(): void {
    this.end();
  }
}

export class EventEmitter<T> {
  private readonly listeners = new Set<(value: T) => void>();
  readonly event = (listener: (value: T) => void): Disposable => {
    this.listeners.add(listener);
    return new Disposable(() => this.listeners.delete(listener));
  };
  fire(value: T): void {
    for (const listener of [...this.listeners]) listener(value);
  }
  dispose(): void {
    this.listeners.clear();
  }
}

export class CancellationTokenSource {
  private readonly emitter = new EventEmitter<void>();
  readonly token = { isCancellationRequested: false, onCancellationRequested: this.emitter.event };
  cancel(): void {
    this.token.isCancellationRequested = true;
    this.emitter.fire();
  }
}

export enum LogLevel { Off, Trace, Debug, Info, Warning, Error }
export enum ProgressLocation { SourceControl = 1, Window = 10, Notification = 15 }

/** What notifications show at the moment. */
export const notifications: string[] = [];
/** What the user answers to messages, in their order; and the messages. */
export const answers: (string | undefined)[] = [];
export const messages: string[] = [];
const message = async (text: string): Promise<string | undefined> => {
  messages.push(text);
  return answers.shift();
};
export const window = {
  showWarningMessage: message,
  showErrorMessage: message,
  showInputBox: async () => answers.shift(),
  setStatusBarMessage: (text: string) => void messages.push(text),
  async withProgress(options: { title: string }, work: (progress: object, token: object) => Promise<void>): Promise<void> {
    notifications.push(options.title);
    await work({}, new CancellationTokenSource().token);
    notifications.splice(notifications.indexOf(options.title), 1);
  },
};

export const env: { remoteName: string | undefined } = { remoteName: undefined };

const registered = new Map<string, (...args: unknown[]) => unknown>();
export const commands = {
  registerCommand(id: string, run: (...args: unknown[]) => unknown): Disposable {
    registered.set(id, run);
    return new Disposable(() => registered.delete(id));
  },
  async executeCommand(id: string, ...args: unknown[]): Promise<unknown> {
    return registered.get(id)?.(...args);
  },
};

/** The user's settings of the section `agentd`. */
export const settings: Record<string, unknown> = {};
/** Those of the workspace. */
export const workspaceSettings: Record<string, unknown> = {};
/** What the Python extension says, where it is there; `activates` where it is not active yet. */
export const python: { api: unknown; asked: number; activates: (() => Promise<unknown>) | undefined } = { api: undefined, asked: 0, activates: undefined };
export const installed = new EventEmitter<void>();
export const trusted = new EventEmitter<void>();
export const extensions = {
  onDidChange: installed.event,
  getExtension(): unknown {
    python.asked++;
    if (python.activates !== undefined) return { isActive: false, exports: undefined, activate: python.activates };
    return python.api === undefined ? undefined : { isActive: true, exports: python.api };
  },
};

export const workspace = {
  onDidGrantWorkspaceTrust: trusted.event,
  getConfiguration: () => ({
    get: (name: string, other: unknown) => workspaceSettings[name] ?? settings[name] ?? other,
    inspect: (name: string) => ({ globalValue: settings[name], workspaceValue: workspaceSettings[name] }),
  }), isTrusted: true, workspaceFolders: undefined as { uri: { scheme: string; fsPath: string } }[] | undefined };
