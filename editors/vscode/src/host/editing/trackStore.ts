/** Tracks of files under review: in memory, and on disk for when the window is opened again. */
import { createHash } from "node:crypto";
import { mkdir, readdir, readFile, rename, rm, stat, writeFile } from "node:fs/promises";
import * as path from "node:path";
import type { Track } from "./attribution";

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

/** In milliseconds; of a file that is gone already, none. */
async function ageOf(file: string): Promise<number> {
  return stat(file).then(({ mtimeMs }) => Date.now() - mtimeMs, () => 0);
}

export function isTooLong({ base, seen }: Track): boolean {
  return base.length > MAX_LENGTH || seen.length > MAX_LENGTH;
}

export class TrackStore {
  private readonly tracks = new Map<string, Kept>();
  private readonly stale = new Set<string>();
  private writing: Promise<void> = Promise.resolve();
  private timer: NodeJS.Timeout | undefined;

  /** Resolves when what was kept is known. */
  readonly loaded: Promise<void>;

  /** `folder`: where they are kept, which this makes; the texts are for the user's eyes alone, as the files are. */
  constructor(private readonly folder: string, private readonly log: (line: string) => void) {
    this.loaded = this.load();
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

  private soon(uri: string): void {
    this.stale.add(uri);
    this.timer ??= setTimeout(() => void this.keep(), KEEP_DELAY_MS);
  }

  private async write(uris: string[]): Promise<void> {
    try {
      if (uris.length > 0) await mkdir(this.folder, { recursive: true, mode: 0o700 });
      for (const uri of uris) {
        const track = this.tracks.get(uri);
        const file = path.join(this.folder, createHash("sha256").update(uri).digest("hex").slice(0, 32) + ENDING);
        if (!track || !isKept(track)) {
          await rm(file, { force: true });
          continue;
        }
        const part = `${file}.${process.pid}`; // another window may write the same
        await writeFile(part, JSON.stringify(track), { mode: 0o600 });
        await rename(part, file);
      }
    } catch (error) {
      this.log(`What is decided place by place is not kept: ${error instanceof Error ? error.message : String(error)}`);
    }
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
    const track: unknown = JSON.parse(await readFile(file, "utf8"));
    if (!isKept(track) || this.tracks.has(track.uri)) return;
    if (track.isSettled) await rm(file, { force: true }); // with its window the steps that could bring it back are gone
    else this.tracks.set(track.uri, track);
  }
}
