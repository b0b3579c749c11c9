/**
 * Tracks of files under review: in memory, and on disk for when the window is opened again. Other windows on the
 * workspace write the same files: what was accepted there is taken over, when this one writes or looks again.
 */
import { createHash } from "node:crypto";
import { readdir, rm, stat } from "node:fs/promises";
import * as path from "node:path";
import { accepted, type Accepted, type Track } from "./attribution";
import { ageOf, alone, readable, replace, written } from "./sharedFile";

/** What is kept of a file. */
export interface Kept extends Track {
  /** As VS Code writes it. */
  uri: string;
  /** The change whose review it is; not known until the tool that made it has ended. */
  sessionId?: string;
  promptId?: string;
  /** There was no such file. */
  isNew: boolean;
  /** Whether `seen` is known, or is only what was there when somebody looked. */
  isSure: boolean;
  /** Some place was accepted. */
  isAccepted: boolean;
  /** Nothing is left to decide, unless an undo brings it back. */
  isSettled: boolean;
  /** The number of the last event of each session that is in it. */
  seqs: Record<string, number>;
  /** What was accepted of it, each with an id: so another window knows what it has not heard of. */
  accepted?: (Accepted & { id: string })[];
}

/** A larger file is compared in the diff editor only. */
export const MAX_LENGTH = 2_000_000;
const MAX_KEPT = 100;
const KEEP_DELAY_MS = 500;
const ENDING = ".json";
const PART = /\.json\.\d+$/;
/** A part that is older than this was left by a window that ended while it wrote. */
const MAX_PART_AGE_MS = 60_000;

function isKept(value: unknown): value is Kept {
  const track = value as Kept | null;
  return typeof track?.uri === "string" && typeof track.base === "string" && typeof track.seen === "string"
    && typeof track.sessionId === "string" && typeof track.promptId === "string" && typeof track.seqs === "object";
}

/** What is another one once a file has been written; undefined where there is none. */
function stampOf(file: string): Promise<string | undefined> {
  return stat(file).then(({ ino, mtimeMs, size }) => `${ino} ${mtimeMs} ${size}`, () => undefined);
}

export function isTooLong({ base, seen }: Track): boolean {
  return base.length > MAX_LENGTH || seen.length > MAX_LENGTH;
}

/** Whether a track has all events that another one has, and more. */
function isAhead(one: Kept, other: Kept): boolean {
  const of = (track: Kept, sessionId: string) => track.seqs[sessionId] ?? 0;
  const sessions = [...new Set([...Object.keys(one.seqs), ...Object.keys(other.seqs)])];
  return sessions.every((each) => of(one, each) >= of(other, each)) && sessions.some((each) => of(one, each) > of(other, each));
}

/** What two windows know of a file, put together: what the agent did as who knows more of it tells, what was accepted from both. */
export function merged(mine: Kept, theirs: Kept): Kept {
  if (mine.sessionId !== theirs.sessionId || mine.promptId !== theirs.promptId) return mine;
  const [most, other] = isAhead(theirs, mine) ? [theirs, mine] : [mine, theirs];
  const known = new Set((most.accepted ?? []).map(({ id }) => id));
  const news = (other.accepted ?? []).filter(({ id }) => !known.has(id));
  if (news.length === 0) return most;
  const track = news.reduce<Track>(accepted, most);
  return { ...most, ...track, isAccepted: true, accepted: [...(most.accepted ?? []), ...news] };
}

export class TrackStore {
  private readonly tracks = new Map<string, Kept>();
  private readonly stale = new Set<string>();
  /** Which file stood under a name when it was last read or written here. */
  private readonly stamps = new Map<string, string>();
  private writing: Promise<void>;
  private timer: NodeJS.Timeout | undefined;

  /** Resolves when what was kept is known. */
  readonly loaded: Promise<void>;

  /**
   * @param folder where they are kept, which this makes; the texts are for the user's eyes alone, as the files are
   * @param onMerged told of a file of which another window has accepted something
   */
  constructor(
    private readonly folder: string, private readonly log: (line: string) => void,
    private readonly onMerged: (uri: string) => void = () => undefined,
  ) {
    this.loaded = this.load();
    this.writing = this.loaded;
  }

  get(uri: string): Kept | undefined {
    return this.tracks.get(uri);
  }

  all(): Kept[] {
    return [...this.tracks.values()];
  }

  put(track: Kept): Kept {
    const before = this.tracks.get(track.uri);
    const names = Object.keys(track) as (keyof Kept)[];
    if (before && names.every((each) => before[each] === track[each])) return before;
    this.tracks.delete(track.uri); // the latest stand last, the oldest go first
    this.tracks.set(track.uri, track);
    this.soon(track.uri);
    const oldest = this.tracks.keys().next().value;
    if (this.tracks.size > MAX_KEPT && oldest !== undefined) this.delete(oldest);
    return track;
  }

  delete(uri: string): void {
    if (this.tracks.delete(uri)) this.soon(uri);
  }

  /** Writes what has changed, now. */
  keep(): Promise<void> {
    clearTimeout(this.timer);
    this.timer = undefined;
    const uris = [...this.stale];
    this.stale.clear();
    this.writing = this.writing.then(() => this.write(uris));
    return this.writing;
  }

  dispose(): void {
    if (this.timer) void this.keep();
  }

  /** Takes over what other windows have accepted since. */
  look(): Promise<void> {
    this.writing = this.writing.then(() => this.told("is not known", async () => {
      for (const uri of [...this.tracks.keys()]) await this.catchUp(uri);
    }));
    return this.writing;
  }

  private soon(uri: string): void {
    this.stale.add(uri);
    this.timer ??= setTimeout(() => void this.keep(), KEEP_DELAY_MS);
  }

  private async write(uris: string[]): Promise<void> {
    const left = new Set(uris);
    if (left.size === 0) return;
    await this.told("is not kept", () => alone(path.join(this.folder, "lock"), async () => {
      for (const uri of uris) {
        await this.catchUp(uri);
        const [track, file] = [this.tracks.get(uri), this.fileOf(uri)];
        if (!track || !isKept(track)) {
          await rm(file, { force: true });
        } else {
          await replace(file, JSON.stringify(track));
          this.stamps.set(uri, (await stampOf(file)) ?? "");
        }
        left.delete(uri);
      }
    }));
    for (const uri of left) this.stale.add(uri); // it goes with what changes next, or when the window is closed
  }

  /** Reads what another window has written of a file since this one did. */
  private async catchUp(uri: string): Promise<void> {
    const file = this.fileOf(uri);
    const stamp = await stampOf(file);
    if (stamp === undefined || stamp === this.stamps.get(uri)) return;
    const theirs = await readable(file);
    this.stamps.set(uri, stamp);
    const mine = this.tracks.get(uri); // as it is now: from here on nothing is awaited
    if (!mine || !isKept(theirs)) return;
    const both = merged(mine, theirs);
    if (both === mine) return;
    this.tracks.set(uri, both);
    this.onMerged(uri);
  }

  private async told(what: string, work: () => Promise<void>): Promise<void> {
    try {
      await work();
    } catch (error) {
      this.log(`What is decided place by place ${what}: ${error instanceof Error ? error.message : String(error)}`);
    }
  }

  private fileOf(uri: string): string {
    return path.join(this.folder, createHash("sha256").update(uri).digest("hex").slice(0, 32) + ENDING);
  }

  private async load(): Promise<void> {
    const names = await readdir(this.folder).catch(() => [] as string[]);
    for (const name of names) {
      const file = path.join(this.folder, name);
      try {
        if (name.endsWith(ENDING)) await this.read(file);
        else if (PART.test(name) && (await ageOf(file)) > MAX_PART_AGE_MS) await rm(file, { force: true });
      } catch (error) {
        this.log(`${name} of the review is left out: ${error instanceof Error ? error.message : String(error)}`);
      }
    }
  }

  private async read(file: string): Promise<void> {
    const stamp = await stampOf(file);
    const track = await written(file);
    if (!isKept(track) || this.tracks.has(track.uri)) return;
    this.stamps.set(track.uri, stamp ?? "");
    if (track.isSettled) await rm(file, { force: true }); // with its window the steps that could bring it back are gone
    else this.tracks.set(track.uri, track);
  }
}
