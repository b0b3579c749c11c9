/**
 * Asks for completions while the user types: not before a pause, and never with an answer to a question that was
 * left behind. Until the new answer is there, what fits of the last one is shown.
 */
import type { Completion } from "../../shared/messages";
import { filter } from "./matching";
import type { Trigger } from "./trigger";

export interface Suggestions {
  place: Trigger;
  items: readonly Completion[];
  /** The next answer is under way. */
  loading: boolean;
  /** Why there are none. */
  error?: string;
}

export type Ask = (trigger: Trigger["trigger"], query: string) => Promise<Completion[]>;

const PAUSE_MS = 90;

export class Completer {
  #asked = 0;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #shown: Suggestions | null = null;
  /** The word that Escape was pressed in: nothing is shown until another one begins. */
  #dismissed: number | null = null;

  constructor(private readonly ask: Ask, private readonly show: (suggestions: Suggestions | null) => void) {}

  /** The caret stands at this trigger now, or at none. */
  at(place: Trigger | null): void {
    clearTimeout(this.#timer);
    this.#asked += 1;
    if (!place) {
      this.#dismissed = null;
      return this.#set(null);
    }
    if (this.#dismissed === place.start) return this.#set(null);
    const last = this.#shown?.place.trigger === place.trigger && this.#shown.place.start === place.start ? this.#shown.items : [];
    this.#set({ place, items: filter(last, place.query, (item) => item.label), loading: true });
    const question = this.#asked;
    this.#timer = setTimeout(() => void this.#answer(question, place), PAUSE_MS);
  }

  /** Escape: what is shown goes, and stays away for this word. */
  dismiss(): void {
    this.#dismissed = this.#shown?.place.start ?? null;
    this.#forget();
  }

  /** Something was taken, or the box is gone. */
  close(): void {
    this.#dismissed = null;
    this.#forget();
  }

  #forget(): void {
    clearTimeout(this.#timer);
    this.#asked += 1;
    this.#set(null);
  }

  async #answer(question: number, place: Trigger): Promise<void> {
    let next: Suggestions;
    try {
      next = { place, items: await this.ask(place.trigger, place.query), loading: false };
    } catch (error) {
      next = { place, items: [], loading: false, error: error instanceof Error ? error.message : String((error as { message?: unknown }).message ?? error) };
    }
    if (question === this.#asked) this.#set(next);
  }

  #set(suggestions: Suggestions | null): void {
    if (!suggestions && !this.#shown) return;
    this.#shown = suggestions;
    this.show(suggestions);
  }
}
