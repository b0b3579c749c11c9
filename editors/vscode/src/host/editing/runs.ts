/** Which sessions have a prompt that runs, and what the runs did to files so far. */
import type { DiffStep } from "../../shared/wire";
import { withAgent, type Track } from "./attribution";
import { applied } from "./edits";
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

/** Of which text the agent made which one. */
export type Step = [from: string, to: string];

/** What the agent did in a text that was `before`; undefined where that is not told, or does not fit. */
export function stepsOf(before: string, told: readonly DiffStep[]): Step[] | undefined {
  const steps: Step[] = [];
  let text = before;
  for (const { by, patch } of told) {
    const next = applied(text, patch);
    if (next === false) return undefined;
    if (by === "agentd") steps.push([text, next]);
    text = next;
  }
  if (told.at(-1)?.by === "others") steps.push([text, text]);
  return steps.length > 0 ? steps : undefined;
}

/** A track once a run is over that did these steps, of which there is one at least. */
export function cameTo(run: Run, track: Track, steps: Step[]): Track {
  if (run.last === undefined && run.start) return steps.reduce<Track>((all, [from, to]) => withAgent(all, from, to), run.start);
  const from = run.last ?? track.seen;
  const after = (steps.at(-1) as Step)[1];
  return from === after ? track : withAgent(track, from, after);
}
