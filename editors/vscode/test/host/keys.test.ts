/** Keys where the system's keyring works, where it fails, and where it waits. */
import { afterEach, expect, test, vi } from "vitest";
import type { Connection } from "../../src/shared/messages";
import { chooseKey } from "../../src/host/keyDialog";
import { Keys } from "../../src/host/keys";
import { answers, EventEmitter, messages } from "./vscode";
import { PlayedDaemon } from "./wire";

const KEY = "sk-very-secret-0123456789";
const SECRET = "agentd.keys";

class Storage {
  readonly kept = new Map<string, string>();
  readonly changed = new EventEmitter<{ key: string }>();
  readonly onDidChange = this.changed.event;
  fails: string | null = null;
  get = async (key: string): Promise<string | undefined> => (this.look(), this.kept.get(key));
  store = async (key: string, value: string): Promise<void> => (this.look(value), void this.kept.set(key, value));
  delete = async (key: string): Promise<void> => (this.look(), void this.kept.delete(key));

  /** As some keyrings do, it names what it was given. */
  private look(value = ""): void {
    if (this.fails !== null) throw new Error(`${this.fails} ${value}`);
  }
}

class Daemon extends PlayedDaemon {
  readonly announced = null;
  readonly connected = new EventEmitter<Connection>();
  readonly onConnection = this.connected.event;
  connection: Connection = { state: "ready", version: "1", program: "agentd" };
  readonly keys: [string, string | null][] = [];

  constructor() {
    super();
    this.known.set("agentd/credentials/set", ({ provider, secret }: { provider: string; secret: string | null }) => {
      this.keys.push([provider, secret]);
      return {};
    });
  }

  becomes(connection: Connection): void {
    this.connection = connection;
    this.connected.fire(connection);
  }
}

const lines: string[] = [];
const say = (line: string): void => void lines.push(line);
const log = { info: say, warn: say, error: say, show: () => say("shown") } as never;

function rooms(): { storage: Storage; daemon: Daemon; keys: Keys } {
  const [storage, daemon] = [new Storage(), new Daemon()];
  return { storage, daemon, keys: new Keys(storage as never, daemon as never, log) };
}

afterEach(() => {
  expect(lines.join()).not.toContain(KEY);
  expect(messages.join()).not.toContain(KEY);
  for (const each of [lines, messages, answers]) each.splice(0);
  vi.useRealTimers();
});

test("a daemon that starts gets the keys, and one that runs what is other", async () => {
  const { storage, daemon, keys } = rooms();
  storage.kept.set(SECRET, JSON.stringify({ one: KEY }));
  expect(await keys.read()).toEqual({ one: KEY });
  await keys.set("two", "sk-2");
  await keys.set("one", null);
  expect(daemon.keys).toEqual([["two", "sk-2"], ["one", null]]);
  await keys.set("two", null);
  expect(storage.kept.size).toBe(0);
});

test("where the keyring cannot be read the daemon starts all the same, the user is told the way out, and goes it", async () => {
  const { storage, daemon, keys } = rooms();
  storage.kept.set(SECRET, JSON.stringify({ one: KEY }));
  storage.fails = `the keyring is locked, ${KEY}`;
  let answer = (_: string): void => undefined;
  answers.push(new Promise<string>((resolve) => (answer = resolve)) as never);
  storage.get = async () => Promise.reject(new Error("the keyring is locked"));
  expect(await keys.read()).toEqual({});
  expect(await keys.read()).toEqual({}); // the daemon is started again: told once
  expect(messages).toEqual([expect.stringMatching(/none of your API keys.*Unlock the system's keyring.*try again/)]);
  expect(lines.join()).toContain("the keyring is locked");
  storage.get = async (key) => storage.kept.get(key);
  answer("Try Again");
  await vi.waitFor(() => expect(daemon.keys).toEqual([["one", KEY]]));
});

test("a daemon that is started anew while the keyring is locked gets the keys that are known", async () => {
  const { storage, keys } = rooms();
  storage.kept.set(SECRET, JSON.stringify({ one: KEY }));
  await keys.read();
  storage.fails = "locked";
  expect(await keys.read()).toEqual({ one: KEY });
});

test("a keyring that waits for its password does not keep the daemon waiting, which is told when it comes", async () => {
  vi.useFakeTimers();
  const { storage, daemon, keys } = rooms();
  let unlock = (_: string): void => undefined;
  storage.get = () => new Promise<string>((resolve) => (unlock = resolve));
  daemon.connection = { state: "starting" };
  const reading = keys.read();
  await vi.advanceTimersByTimeAsync(5_000);
  expect(await reading).toEqual({});
  unlock(JSON.stringify({ one: KEY }));
  await vi.advanceTimersByTimeAsync(1);
  expect(daemon.keys).toEqual([]);
  daemon.becomes({ state: "ready", version: "1", program: "agentd" });
  await vi.advanceTimersByTimeAsync(1);
  expect(daemon.keys).toEqual([["one", KEY]]);
});

test("a key that cannot be kept is said to be, by no word of its own, and the others stay", async () => {
  const { storage, daemon, keys } = rooms();
  storage.kept.set(SECRET, JSON.stringify({ one: "sk-1" }));
  await keys.read();
  storage.store = async (_, value) => Promise.reject(new Error(`cannot write ${value}`));
  await expect(keys.set("two", KEY)).rejects.toMatchObject({
    kind: "keyring", message: "The key for two is not kept: VS Code's secret storage failed.", hint: expect.stringContaining("Unlock"),
  });
  expect(daemon.keys).toEqual([]);
  expect(storage.kept.get(SECRET)).toBe(JSON.stringify({ one: "sk-1" }));
});

test("a key that cannot be deleted is said to be kept still", async () => {
  const { storage, keys } = rooms();
  storage.kept.set(SECRET, JSON.stringify({ one: KEY }));
  await keys.read();
  storage.delete = async () => Promise.reject(new Error(`cannot delete ${KEY}`));
  await expect(keys.set("one", null)).rejects.toMatchObject({ kind: "keyring", message: expect.stringContaining("is still kept") });
  expect(keys.providers).toEqual(["one"]);
});

test("what cannot be kept can be used until the window closes, also by a daemon that is started anew", async () => {
  const { storage, daemon, keys } = rooms();
  storage.fails = "no keyring";
  answers.push(KEY, "Try Again", "Use Until the Window Closes");
  await chooseKey(keys, async () => [], "one");
  expect(daemon.keys).toEqual([["one", KEY]]);
  expect(messages.at(-1)).toBe("agentd: the key for one is used until this window closes");
  storage.fails = null;
  expect(await keys.read()).toEqual({ one: KEY });
  expect(storage.kept.size).toBe(0);
});

test("a storage that tells of no changes, or fails as it does, does no harm", async () => {
  const storage = new Storage();
  Object.assign(storage, { onDidChange: () => { throw new Error("no events"); } });
  const daemon = new Daemon();
  new Keys(storage as never, daemon as never, log).dispose();
  expect(lines.join()).toContain("no events");
  const { storage: other, keys } = rooms();
  other.fails = "locked";
  other.changed.fire({ key: SECRET });
  await vi.waitFor(() => expect(messages.length).toBe(1));
  keys.dispose();
});
