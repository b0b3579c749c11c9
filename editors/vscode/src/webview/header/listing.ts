/** The sessions that the picker lists: read page by page, anew for each query; answers that come late are dropped. */
import { signal, type ReadonlySignal } from "@preact/signals";
import type { Session } from "../../shared/wire";
import type { Store } from "../model/store";

export interface Listing {
  sessions: readonly Session[];
  loading: boolean;
  more: boolean;
  error?: string;
}

const PAUSE_MS = 150;

export class SessionListing {
  readonly #state = signal<Listing>({ sessions: [], loading: true, more: false });
  #asked = 0;
  #cursor: string | undefined;
  #query = "";
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(private readonly store: Pick<Store, "call">) {}

  get state(): ReadonlySignal<Listing> {
    return this.#state;
  }

  find(query: string): void {
    clearTimeout(this.#timer);
    this.#query = query;
    this.#state.value = { ...this.#state.peek(), loading: true };
    this.#timer = setTimeout(() => void this.#read(false), query === "" ? 0 : PAUSE_MS);
  }

  more(): void {
    if (!this.#state.peek().loading) void this.#read(true);
  }

  /** A session was renamed or is gone. */
  change(sessionId: string, change: (session: Session) => Session | null): void {
    const sessions = this.#state.peek().sessions.flatMap((one) => (one.sessionId === sessionId ? change(one) ?? [] : one));
    this.#state.value = { ...this.#state.peek(), sessions };
  }

  close(): void {
    clearTimeout(this.#timer);
    this.#asked += 1;
  }

  async #read(further: boolean): Promise<void> {
    const question = (this.#asked += 1);
    const before = further ? this.#state.peek().sessions : [];
    this.#state.value = { ...this.#state.peek(), loading: true };
    try {
      const { sessions, nextCursor } = await this.store.call("sessions", {
        ...(this.#query ? { query: this.#query } : {}), ...(further && this.#cursor ? { cursor: this.#cursor } : {}),
      });
      if (question !== this.#asked) return;
      this.#cursor = nextCursor;
      const known = new Set(before.map((one) => one.sessionId));
      this.#state.value = { sessions: [...before, ...sessions.filter((one) => !known.has(one.sessionId))], loading: false, more: nextCursor !== undefined };
    } catch (error) {
      if (question !== this.#asked) return;
      this.#state.value = { sessions: before, loading: false, more: false, error: (error as { message?: string }).message ?? String(error) };
    }
  }
}

/** `now`, `5 min`, `3 h`, `yesterday`, `12 Nov`, `12 Nov 2025`. */
export function ago(time: string, now: number): string {
  const then = new Date(time);
  const minutes = (now - then.getTime()) / 60_000;
  if (!(minutes >= 1)) return "now";
  if (minutes < 60) return `${Math.floor(minutes)} min`;
  const days = Math.floor(midnight(new Date(now)) - midnight(then));
  if (days === 0) return `${Math.floor(minutes / 60)} h`;
  if (days === 1) return "yesterday";
  const sameYear = then.getFullYear() === new Date(now).getFullYear();
  return then.toLocaleDateString("en-GB", { day: "numeric", month: "short", ...(sameYear ? {} : { year: "numeric" }) });
}

/** The day's number; a day with a change of the clock is one day as well. */
function midnight(date: Date): number {
  return Date.UTC(date.getFullYear(), date.getMonth(), date.getDate()) / 86_400_000;
}
