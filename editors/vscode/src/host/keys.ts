/** The keys of model providers: in VS Code's secret storage, and from there to the daemon. Nowhere else. */
import * as vscode from "vscode";
import type { Daemon } from "./daemon";
import { HostError, toCallError } from "./handlers";
import { pause } from "./process";

const SECRET = "agentd.keys";
const TRY_AGAIN = "Try Again";
const SHOW_LOG = "Show Log";
/** A keyring may wait for its password: the daemon starts without, and is told when it comes. */
const WAIT_MS = 5_000;

export class Keys implements vscode.Disposable {
  private kept: Record<string, string> = {};
  /** Keys for this window alone. */
  private lent: Record<string, string> = {};
  private readonly changed = new vscode.EventEmitter<void>();
  private readonly source: vscode.Disposable;
  private told: Record<string, string> = {};
  /** The user knows that they cannot be read. */
  private isComplained = false;

  constructor(private readonly secrets: vscode.SecretStorage, private readonly daemon: Daemon, private readonly log: vscode.LogOutputChannel) {
    this.source = vscode.Disposable.from(this.listen(), daemon.onConnection(({ state }) => {
      if (state === "ready") void this.tell(); // what has changed since it was started
    }));
  }

  private get known(): Record<string, string> {
    return { ...this.kept, ...this.lent };
  }

  readonly onChanged = this.changed.event;

  /** Providers for which there is a key. */
  get providers(): string[] {
    return Object.keys(this.known).sort();
  }

  /**
   * Keys by provider, for a daemon that starts. Where the secret storage fails these are the ones that are known: a
   * daemon without keys is of more use than none. The user is told.
   */
  async read(): Promise<Record<string, string>> {
    const reading = this.readKept();
    const late = Symbol();
    if ((await Promise.race([reading, pause(WAIT_MS).then(() => late)])) === late) {
      this.log.warn("VS Code's secret storage does not answer: agentd starts without the keys, and is told them when it does.");
      void reading.then((isRead) => (isRead ? this.tell() : undefined));
    }
    this.told = this.known;
    return this.known;
  }

  /**
   * Keeps a key, or with null forgets it, here and in the daemon. Fails with a HostError of kind `keyring` where the
   * secret storage does; then all is as it was.
   */
  async set(provider: string, key: string | null): Promise<void> {
    try {
      const kept = parsed(await this.secrets.get(SECRET));
      if (key === null) delete kept[provider];
      else kept[provider] = key;
      if (Object.keys(kept).length === 0) await this.secrets.delete(SECRET);
      else await this.secrets.store(SECRET, JSON.stringify(kept));
    } catch (error) {
      const what = key === null ? `The key for ${provider} is still kept` : `The key for ${provider} is not kept`;
      this.log.error(`${what}: ${this.without(error, key)}`);
      throw new HostError(`${what}: VS Code's secret storage failed.`, { kind: "keyring", hint: "Unlock the system's keyring, or set it up, then try again." });
    }
    const { [provider]: _, ...lent } = this.lent;
    this.lent = lent;
    await this.follow();
  }

  /** Gives a key to the daemon that is not kept: it is gone with this window. */
  async lend(provider: string, key: string): Promise<void> {
    this.lent = { ...this.lent, [provider]: key };
    await this.tell();
  }

  dispose(): void {
    this.source.dispose();
    this.changed.dispose();
  }

  private listen(): vscode.Disposable {
    try {
      return this.secrets.onDidChange((event) => {
        if (event.key === SECRET) void this.follow(); // another window may have changed them
      });
    } catch (error) {
      this.log.warn(`What other windows do to the keys is not heard of: ${this.without(error)}`);
      return new vscode.Disposable(() => undefined);
    }
  }

  private async follow(): Promise<void> {
    if (await this.readKept()) await this.tell();
  }

  /** Whether they could be read. */
  private async readKept(): Promise<boolean> {
    try {
      this.kept = parsed(await this.secrets.get(SECRET));
      this.isComplained = false;
      return true;
    } catch (error) {
      this.log.error(`The keys cannot be read from VS Code's secret storage: ${this.without(error)}`);
      if (!this.isComplained) void this.complain();
      return false;
    }
  }

  /** Waits for the user's word, so nobody waits for this. */
  private async complain(): Promise<void> {
    this.isComplained = true;
    const answer = await vscode.window.showWarningMessage(
      "agentd has none of your API keys: VS Code's secret storage cannot be read. Unlock the system's keyring, or set it up, then try again. Models that need no key work.",
      TRY_AGAIN, SHOW_LOG,
    );
    this.isComplained = false;
    if (answer === SHOW_LOG) this.log.show(true);
    if (answer === TRY_AGAIN) await this.follow();
  }

  /** Tells the daemon what is other than what it was told. */
  private async tell(): Promise<void> {
    const [before, now] = [this.told, this.known];
    if (this.daemon.connection.state === "ready") {
      this.told = now;
      for (const provider of new Set([...Object.keys(before), ...Object.keys(now)])) {
        const secret = now[provider] ?? null;
        if (secret === (before[provider] ?? null)) continue;
        await this.daemon.request("agentd/credentials/set", { provider, secret }).catch((error: unknown) => {
          this.log.warn(`agentd was not told the key for ${provider}: ${this.without(error, secret)}`);
        });
      }
    }
    this.changed.fire();
  }

  /** What went wrong, without any key: a keyring may name in its complaint what it was given. */
  private without(error: unknown, key?: string | null): string {
    const keys = [...Object.values(this.known), ...Object.values(this.told), ...(key ? [key] : [])];
    return keys.filter((each) => each !== "").reduce((text, each) => text.replaceAll(each, "…"), toCallError(error).message);
  }
}

function parsed(kept: string | undefined): Record<string, string> {
  if (kept === undefined) return {};
  try {
    const value: unknown = JSON.parse(kept);
    if (typeof value !== "object" || value === null) return {};
    return Object.fromEntries(Object.entries(value).filter(([, key]) => typeof key === "string")) as Record<string, string>;
  } catch {
    return {};
  }
}
