/** Which sessions have a prompt that runs, and what the runs did to files so far. */
import { withAgent, type Track } from "./attribution";
import type { Kept } from "./trackStore";

/** What a run did to a file. */
export interface Run {
  /** The file's track as it was before; not known where the run began, or something was accepted, without it. */
  start?: Kept | undefined;
  /** The text behind the last edit that was seen as it was made. */
  last?: string;
  /** The session whose tool edited the file last. */
  sessionId?: string;
}

export class Runs {
  /** The prompt of each session that runs one. */
  private readonly running = new Map<string, string | undefined>();
  private readonly files = new Map<string, Run>();

  get isAny(): boolean {
    return this.running.size > 0;
  }

  get isOne(): boolean {
    return this.running.size === 1;
  }

  has(sessionId: string): boolean {
    return this.running.has(sessionId);
  }

  /** Whether a session runs one of these prompts. */
  isIn(sessionId: string, promptIds: string[]): boolean {
    const running = this.running.get(sessionId);
    return running !== undefined && promptIds.includes(running);
  }

  /** What is left of its last run is of no use: that came to nothing, or was no run but a rewind. */
  begin(sessionId: string, promptId: string | undefined): void {
    for (const [uri, run] of this.files) if (!this.isAny || run.sessionId === sessionId) this.files.delete(uri);
    this.running.set(sessionId, promptId);
  }

  end(sessionId: string): void {
    this.running.delete(sessionId);
  }

  clear(): void {
    this.running.clear();
    this.files.clear();
  }

  /** The run of a file, which begins with this where there is none. */
  of(uri: string, start?: Kept): Run {
    const run = this.files.get(uri) ?? { start };
    this.files.set(uri, run);
    return run;
  }

  get(uri: string): Run | undefined {
    return this.files.get(uri);
  }

  take(uri: string): Run | undefined {
    const run = this.files.get(uri);
    this.files.delete(uri);
    return run;
  }

  /** The file's track is another one than what the run made of its first: that is no longer to be gone back to. */
  cut(uri: string, isRun = this.files.has(uri)): void {
    if (isRun) delete this.of(uri).start;
    else this.files.delete(uri);
  }
}

/** A track once a run is over that made `after` of what was `before` it. */
export function cameTo(run: Run, track: Track, before: string, after: string): Track {
  if (run.last === undefined && run.start) return withAgent(run.start, before, after);
  const from = run.last ?? track.seen;
  return from === after ? track : withAgent(track, from, after);
}
