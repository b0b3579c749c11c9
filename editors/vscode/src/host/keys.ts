/** The keys of model providers: in VS Code's secret storage, and from there to the daemon. Nowhere else. */
import * as vscode from "vscode";
import type { Daemon } from "./daemon";
import { HostError, toCallError } from "./handlers";

const SECRET = "agentd.keys";

export class Keys implements vscode.Disposable {
  private known: Record<string, string> = {};
  private readonly changed = new vscode.EventEmitter<void>();
  private readonly source: vscode.Disposable;
  private told: Record<string, string> = {};

  constructor(private readonly secrets: vscode.SecretStorage, private readonly daemon: Daemon, private readonly log: vscode.LogOutputChannel) {
    this.source = secrets.onDidChange((event) => {
      if (event.key === SECRET) void this.follow(); // another window may have changed them
    });
  }

  readonly onChanged = this.changed.event;

  /** Providers for which there is a key. */
  get providers(): string[] {
    return Object.keys(this.known).sort();
  }

  /** Keys by provider, for a daemon that starts. */
  async read(): Promise<Record<string, string>> {
    let kept: string | undefined;
    try {
      kept = await this.secrets.get(SECRET);
    } catch (error) {
      this.log.error(`The keys cannot be read from VS Code's secret storage: ${toCallError(error).message}`);
      throw new HostError("The keys cannot be read from VS Code's secret storage.", { hint: "Unlock the system's keyring, then restart agentd.", cause: error });
    }
    this.known = parsed(kept);
    this.told = { ...this.known };
    return { ...this.known };
  }

  /** Keeps a key, or with null forgets it, here and in the daemon. */
  async set(provider: string, key: string | null): Promise<void> {
    const kept = parsed(await this.secrets.get(SECRET));
    if (key === null) delete kept[provider];
    else kept[provider] = key;
    await this.secrets.store(SECRET, JSON.stringify(kept));
    await this.follow();
  }

  dispose(): void {
    this.source.dispose();
    this.changed.dispose();
  }

  /** Tells the daemon what is other than what it was told. */
  private async follow(): Promise<void> {
    this.known = parsed(await this.secrets.get(SECRET));
    const before = this.told;
    this.told = { ...this.known };
    const providers = new Set([...Object.keys(before), ...Object.keys(this.known)]);
    if (this.daemon.connection.state === "ready") {
      for (const provider of providers) {
        const secret = this.known[provider] ?? null;
        if (secret === (before[provider] ?? null)) continue;
        await this.daemon.request("agentd/credentials/set", { provider, secret }).catch((error: unknown) => {
          this.log.warn(`agentd was not told the key for ${provider}: ${toCallError(error).message}`);
        });
      }
    }
    this.changed.fire();
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
