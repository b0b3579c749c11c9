/**
 * What is written and not sent yet, for each session, kept over hiding and reloading the view; and what is on its
 * way, which comes back into the box unless it arrived.
 *
 * A prompt keeps its id until it is changed: sent again after a failure of which nobody knows how far it came, it
 * joins the first one instead of running twice.
 */
import type { Signal } from "@preact/signals";
import type { ContentBlock } from "../../shared/wire";
import { toBlocks } from "./blocks";
import { EMPTY, isEmpty, join, type Draft } from "./draft";

/** The name of a session, or of the one that begins with the next prompt. */
export type Key = string;
export const NEW: Key = "";

export interface Kept {
  draft: Draft;
  /** The id that it was sent with before. */
  promptId?: string;
}

type All = Readonly<Record<Key, Kept>>;
export interface Outgoing { promptId: string; draft: Draft }

/** What a session holds: ids of prompts where they are known, and their blocks. */
export interface Said {
  promptIds: readonly string[];
  prompts: readonly (readonly ContentBlock[])[];
}

/** Drafts of sessions that were left long ago go first. */
const MOST = 50;

export class Drafts {
  constructor(private readonly kept: Signal<All>, private readonly outgoing: Signal<Readonly<Record<Key, readonly Outgoing[]>>>) {}

  get(key: Key): Draft {
    return this.kept.value[key]?.draft ?? EMPTY;
  }

  set(key: Key, draft: Draft): void {
    const { [key]: before, ...others } = this.kept.peek();
    if (draft.text === "" && draft.chips.length === 0) {
      if (before) this.kept.value = others;
      return;
    }
    const promptId = before?.promptId !== undefined && same(before.draft, draft) ? { promptId: before.promptId } : {};
    const all = Object.entries(others).slice(-(MOST - 1));
    this.kept.value = { ...Object.fromEntries(all), [key]: { draft, ...promptId } };
  }

  /** Takes the draft out of the box to be sent. */
  leave(key: Key, newId: () => string): Outgoing {
    const kept = this.kept.peek()[key] ?? { draft: EMPTY };
    const sent = { promptId: kept.promptId ?? newId(), draft: kept.draft };
    const before = this.outgoing.peek();
    this.outgoing.value = { ...before, [key]: [...(before[key] ?? []), sent] };
    this.set(key, EMPTY);
    return sent;
  }

  /** It is safe in the daemon. */
  arrived(key: Key, sent: Outgoing): void {
    const { [key]: all = [], ...others } = this.outgoing.peek();
    const left = all.filter((one) => one.promptId !== sent.promptId);
    this.outgoing.value = left.length > 0 ? { ...others, [key]: left } : others;
  }

  /** It was refused: back into the box, before what was written since. */
  back(key: Key, sent: Outgoing, box: Key = key): void {
    this.arrived(key, sent);
    const now = this.get(box);
    this.set(box, join(sent.draft, now));
    if (isEmpty(now)) this.#name(box, sent.promptId);
  }

  /** A session has begun with the prompt from the box without one: what was written since goes along. */
  move(from: Key, to: Key): void {
    const draft = this.get(from);
    if (isEmpty(draft)) return;
    this.set(from, EMPTY);
    this.set(to, join(this.get(to), draft));
  }

  /** Gives `left` back, which was on its way when the view was, unless it arrived in a session that holds `said`. */
  recover(key: Key, left: readonly Outgoing[], said: Said): void {
    const prompts = said.prompts.map((prompt) => JSON.stringify(prompt));
    for (const sent of left) {
      const arrived = said.promptIds.includes(sent.promptId) || prompts.includes(JSON.stringify(toBlocks(sent.draft)));
      if (arrived) this.arrived(key, sent);
      else this.back(key, sent);
    }
  }

  #name(key: Key, promptId: string): void {
    const kept = this.kept.peek()[key];
    if (kept) this.kept.value = { ...this.kept.peek(), [key]: { draft: kept.draft, promptId } };
  }
}

function same(a: Draft, b: Draft): boolean {
  return JSON.stringify(toBlocks(a)) === JSON.stringify(toBlocks(b));
}
