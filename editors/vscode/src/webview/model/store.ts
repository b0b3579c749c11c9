/**
 * The view's state: what the host told, and the shown session as the events make it. Components read the signals
 * and are drawn anew when what they read changes; nobody but this file writes them.
 */
import { computed, signal, type ReadonlySignal, type Signal } from "@preact/signals";
import { createContext } from "preact";
import { useContext, useMemo, useRef } from "preact/hooks";
import type { Attachment, CallName, Change, Params, Result, Shown, Surroundings, ToView } from "../../shared/messages";
import type { EventNotification, Message } from "../../shared/wire";
import type { Host, Notice } from "../host";
import { createMemory, type Memory } from "./memory";
import { apply, prepend } from "./reduce";
import { adopted, viewOf } from "./snapshot";
import type { SessionView } from "./view";

export type Other = Extract<ToView, { type: "others" }>["sessions"][number];

/** What the host says to the composer alone: it has no state here. */
export interface Signals {
  attach: Attachment[];
  draft: string;
  focus: undefined;
}

export interface Store {
  surroundings: ReadonlySignal<Surroundings | null>;
  /** The shown session; null: none yet. */
  session: ReadonlySignal<SessionView | null>;
  changes: ReadonlySignal<Change[]>;
  others: ReadonlySignal<Other[]>;
  /** True where the set-up takes the transcript's room though a session is shown (chosen by the user). */
  setUp: Signal<boolean>;
  /** What the last failed call said, until it is dismissed (null). Set by `report`. */
  failure: Signal<{ message: string; hint?: string } | null>;
  memory: Memory;
  /** Milliseconds by which the daemon's clock is behind this one's, as far as is known. */
  skew(): number;
  /** Says hello to the host: the first thing a view does. */
  begin(): Promise<void>;
  /** Raises `CallFailure`. */
  call<N extends CallName>(name: N, params: Params<N>): Promise<Result<N>>;
  /** As `call`, but a failure is shown to the user and undefined comes back. */
  attempt<N extends CallName>(name: N, params: Params<N>): Promise<Result<N> | undefined>;
  /** Shows what a call has answered with, `fork` or `open`. */
  show(shown: Shown): void;
  /** Puts the page before the first loaded message into the transcript. False: there is none. */
  earlier(): Promise<boolean>;
  /** Reads the sub-agents that a call of the shown session ran, where they were not seen whole. */
  children(toolCallId: string): Promise<void>;
  on<K extends keyof Signals>(what: K, listener: (value: Signals[K]) => void): () => void;
  dispatch(notice: Notice): void;
}

/** `frame` puts off what it is given to the next drawing of the page. */
export function createStore(host: Host, frame: (work: () => void) => void = nextFrame): Store {
  const surroundings = signal<Surroundings | null>(null);
  const session = signal<SessionView | null>(null);
  const changes = signal<Change[]>([]);
  const others = signal<Other[]>([]);
  const failure = signal<{ message: string; hint?: string } | null>(null);
  const memory = createMemory(host);
  const shownId = memory.kept<string | null>("sessionId", null);
  const listeners: { [K in keyof Signals]: Set<(value: Signals[K]) => void> } = {
    attach: new Set(), draft: new Set(), focus: new Set(),
  };
  let waiting: EventNotification[] = [];
  let due = false;
  let attaching: string | null = null;
  let leaving = 0;
  let paging: Promise<boolean> | null = null;
  let skew: number | null = null;

  function show(shown: Shown | null): void {
    const before = session.peek();
    session.value = shown ? viewOf(shown, before) : null;
    changes.value = shown?.changes ?? [];
    shownId.value = shown?.snapshot.session.sessionId ?? null;
  }

  /** Many events in a frame are one drawing. */
  function take(events: EventNotification[]): void {
    const last = events.at(-1);
    // What came by the shortest way tells best how the clocks differ.
    if (last) skew = Math.min(skew ?? Infinity, Date.now() - Date.parse(last.time));
    waiting.push(...events);
    if (due) return;
    due = true;
    frame(() => {
      due = false;
      fold();
    });
  }

  function fold(): void {
    if (attaching !== null) return;
    const events = waiting;
    waiting = [];
    let view = session.peek();
    if (!view) return;
    for (const [index, event] of events.entries()) {
      view = apply(view, event);
      if (!view.gap) continue;
      // Behind a gap nothing is lost a second time: what is told once more by the reading is known by its number.
      waiting = events.slice(index);
      break;
    }
    session.value = view;
    if (view.gap && leaving === 0) void attach(view.session.sessionId);
  }

  /** Events were missed: reads the session anew; what comes meanwhile waits. */
  async function attach(sessionId: string): Promise<void> {
    if (attaching !== null) return;
    attaching = sessionId;
    try {
      const shown = await host.call("open", { sessionId });
      if (session.peek()?.session.sessionId === sessionId) show(shown);
    } catch (error) {
      report(error);
    } finally {
      attaching = null;
      if (!session.peek()?.gap) fold();
    }
  }

  function report(error: unknown): void {
    const { message, hint } = error as { message?: string; hint?: string };
    failure.value = { message: message ?? String(error), ...(hint ? { hint } : {}) };
  }

  async function page(): Promise<boolean> {
    const view = session.peek();
    const first = view?.oldest;
    if (!view?.hasMore || first === undefined) return false;
    const sessionId = view.session.sessionId;
    const { messages, hasMore }: { messages: Message[]; hasMore: boolean } = await host.call("earlier", { sessionId, before: first });
    const now = session.peek();
    if (now?.session.sessionId !== sessionId || now.oldest !== first) return false;
    session.value = prepend(now, messages, hasMore);
    return messages.length > 0;
  }

  const store: Store = {
    surroundings, session, changes, others, failure, memory,
    setUp: signal(false),
    skew: () => skew ?? 0,
    async begin() {
      host.listen(store.dispatch);
      try {
        const before = shownId.peek();
        const first = await host.call("ready", before === null ? {} : { sessionId: before });
        surroundings.value = first.surroundings;
        show(first.shown);
        fold();
      } catch (error) {
        report(error);
      }
    },
    call: (name, params) => host.call(name, params),
    async attempt(name, params) {
      // While the user goes to another session, the one before is not read anew: the later of two readings counts.
      const leaves = name === "open" || name === "fork";
      if (leaves) leaving++;
      try {
        return await host.call(name, params);
      } catch (error) {
        // Another session was chosen meanwhile: that is what the user wanted.
        if (!leaves || (error as { kind?: string }).kind !== "cancelled") report(error);
        return undefined;
      } finally {
        if (leaves) leaving--;
      }
    },
    show,
    earlier() {
      paging ??= page().catch((error: unknown) => {
        report(error);
        return false;
      }).finally(() => {
        paging = null;
      });
      return paging;
    },
    async children(toolCallId) {
      const sessionId = session.peek()?.session.sessionId;
      if (sessionId === undefined) return;
      const { children } = await host.call("children", { sessionId, toolCallId });
      fold(); // what came before them
      const view = session.peek();
      if (view?.session.sessionId === sessionId) session.value = adopted(view, children);
    },
    on(what, listener) {
      const all = listeners[what] as Set<typeof listener>;
      all.add(listener);
      return () => all.delete(listener);
    },
    dispatch(notice) {
      switch (notice.type) {
        case "surroundings": surroundings.value = notice.surroundings; break;
        case "session":
          waiting = [];
          show(notice.shown);
          break;
        case "events": take(notice.events); break;
        case "changes":
          if (notice.sessionId === session.peek()?.session.sessionId) changes.value = notice.changes;
          break;
        case "others": others.value = notice.sessions; break;
        case "attach": for (const listener of listeners.attach) listener(notice.attachments); break;
        case "draft": for (const listener of listeners.draft) listener(notice.text); break;
        case "focus": for (const listener of listeners.focus) listener(undefined); break;
      }
    },
  };
  return store;
}

/** A page that is hidden, by VS Code too, draws no frames; its events must not pile up for ever. */
const HIDDEN_MS = 250;

function nextFrame(work: () => void): void {
  const run = () => {
    cancelAnimationFrame(frame);
    clearTimeout(timer);
    work();
  };
  const frame = requestAnimationFrame(run);
  const timer = setTimeout(run, HIDDEN_MS);
}

export const StoreContext = createContext<Store | null>(null);

/** The store, inside a component. */
export function useStore(): Store {
  const store = useContext(StoreContext);
  if (!store) throw new Error("There is no store around this component.");
  return store;
}

/** A part of the shown session, as a signal: drawn anew only when the part changes. */
export function part<T>(store: Store, read: (view: SessionView) => T, without: T): ReadonlySignal<T> {
  return computed(() => (store.session.value ? read(store.session.value) : without));
}

/** A part of the shown session, inside a component that is there only while one is shown: drawn anew when it changes. */
export function useShown<T>(read: (view: SessionView) => T): T {
  const store = useStore();
  // The last view, for the moment in which the session has gone and the component has not.
  const last = useRef(store.session.peek());
  return useMemo(() => computed(() => read((last.current = store.session.value ?? last.current)!)), [store]).value;
}
