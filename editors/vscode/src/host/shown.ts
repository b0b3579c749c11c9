/** The session that the view shows: read whole when it is opened, and followed from there on. */
import type { Disposable, Memento } from "vscode";
import type { Change, Shown, ToView } from "../shared/messages";
import type { AttachResult, EventNotification, Session, SessionGetResult } from "../shared/wire";
import type { Wire } from "./daemon";
import type { Events } from "./events";
import { HostError, toCallError } from "./handlers";

const BATCH_MS = 16;
/** A session whose reading takes longer is shown as its last messages are first: a long one that was not open. */
const PATIENCE_MS = 60;
/** No journal reaches that far: what is attached behind it is answered with a snapshot. */
const SNAPSHOT = Number.MAX_SAFE_INTEGER;
const KEPT = "shown";
/** So many of the last events are told with a session: about those of the messages in its snapshot. */
const HISTORY = 1000;
const HISTORY_LEAST = 60;
/** A session that is held is looked at so often: its daemon may be one that is just ending (the window was reloaded). */
const HELD_MS = 500;
const HELD_LATER_MS = 5_000;
const HELD_TOLD_AFTER = 12;

export interface ShownParts {
  client: Wire;
  events: Events;
  post(message: ToView): void;
  /** What is known at once of the changes in a session. */
  changes(snapshot: SessionGetResult): Change[];
  /** Tells the user something that no view may be there to show. */
  tell(message: string): void;
  memory: Memento;
  /** Another process has had the shown session for a while: the user may want a way out. */
  held(session: Session): void;
}

/** A session as it was read. */
interface Read {
  snapshot: SessionGetResult;
  history: EventNotification[];
  /** What happened behind the snapshot while the history was still on its way. */
  behind: EventNotification[];
  held: boolean;
}

interface Current {
  id: string;
  /** Another process holds it: it is shown as it was when it was read. */
  held: boolean;
  /** It is being read anew: what happens meanwhile is part of what comes. */
  reading: boolean;
  /** The view has not been told it. */
  untold: boolean;
}

export class ShownSession implements Disposable {
  private current: Current | null = null;
  private batch: EventNotification[] = [];
  private timer: NodeJS.Timeout | null = null;
  private heldTimer: NodeJS.Timeout | null = null;
  /** Each change of what is shown has a number, so that the user's last one counts. */
  private number = 0;
  private readonly sources: Disposable[];

  constructor(private readonly parts: ShownParts) {
    this.sources = [
      parts.events.on((event) => this.take(event)),
      parts.events.onGap((id) => void (id === this.current?.id && this.again(true))),
    ];
  }

  /** Whether another process has the shown session, so that nothing can be asked of it here. */
  get isHeld(): boolean {
    return this.current?.held === true;
  }

  get id(): string | null {
    return this.current?.id ?? null;
  }

  /** What was shown when the window was last open. */
  get remembered(): string | null {
    return this.parts.memory.get<string | null>(KEPT, null);
  }

  /**
   * Shows a session from now on; the caller tells the view. Where all of it takes its time, that is its last page at
   * first, and what else belongs to it is told once it is known. Fails as `get` and `attach` do, and changes nothing then.
   */
  async open(sessionId: string): Promise<Shown> {
    const number = ++this.number;
    const page = this.get(sessionId);
    const reading = this.read(sessionId, page);
    const early = page.then((snapshot) => pause(PATIENCE_MS).then(() => ({ snapshot, history: [], behind: [], held: false, isPage: true })));
    const read: Read & { isPage?: boolean } = await Promise.race([reading, early]);
    if (read.isPage === true) reading.catch(() => undefined); // looked at below
    if (number !== this.number) throw new HostError("Another session was opened meanwhile.", { kind: "cancelled" });
    const shown = this.show(read);
    if (read.isPage === true && this.current !== null) void this.complete(this.current, number, reading);
    return shown;
  }

  /** Tells the view the rest of a session of which it has the last page. */
  private async complete(current: Current, number: number, reading: Promise<Read>): Promise<void> {
    current.reading = true;
    current.untold = true; // until then another daemon has to tell it from its beginning
    try {
      const read = await reading;
      if (number === this.number) this.parts.post({ type: "session", shown: this.show(read) });
    } catch (error) {
      if (number !== this.number) return;
      // The page is what the view has: it goes on from there, and asks again where something is missing.
      if (toCallError(error).kind !== "ended") current.untold = false;
      this.failed(error);
    } finally {
      current.reading = false;
    }
  }

  /** Shows a session that was just made. */
  begin(session: Session): Shown {
    this.number++;
    const empty = { messages: [], hasMore: false, pending: [], queue: [], todo: [] };
    return this.show({ snapshot: { session, ...empty, seq: session.seq }, history: [], behind: [], held: false });
  }

  /** Shows a session as soon as there is a daemon to read it from (`again`). */
  expect(sessionId: string): void {
    this.number++;
    this.change({ id: sessionId, held: false, reading: false, untold: true });
  }

  /** Shows none. */
  clear(): void {
    this.number++;
    this.change(null);
    this.parts.post({ type: "session", shown: null });
  }

  /**
   * The daemon is another one: catches up, from where this was, with nothing lost and nothing twice.
   *
   * @param hasGap events of this daemon never came: the last one's number does not tell from where on
   */
  async again(hasGap = false): Promise<void> {
    const current = this.current;
    if (current === null || current.reading) return;
    const number = this.number;
    current.reading = true;
    this.flush();
    try {
      if (!hasGap && !current.held && !current.untold) {
        const afterSeq = this.parts.events.seq(current.id);
        const result = await this.attach(current.id, afterSeq);
        if (number !== this.number) return;
        // What happened while this was asked was not told.
        const isQuiet = this.parts.events.seq(current.id) === afterSeq;
        if (result.kind === "replay" && result.partial === undefined && isQuiet) {
          current.reading = false;
          for (const event of result.events ?? []) this.parts.events.take(event as unknown as EventNotification);
          return;
        }
      }
      const read = await this.read(current.id);
      if (number === this.number) this.parts.post({ type: "session", shown: this.show(read) });
    } catch (error) {
      if (number === this.number) this.failed(error);
    } finally {
      current.reading = false;
    }
  }

  private failed(error: unknown): void {
    const { kind, message } = toCallError(error);
    if (kind === "sessionNotFound") this.clear();
    if (kind !== "ended") this.parts.tell(message); // after an end the next daemon is asked
  }

  /** Sends what waits at once: before anything else is said to the view. */
  flush(): void {
    if (this.timer !== null) clearTimeout(this.timer);
    this.timer = null;
    if (this.batch.length === 0 || this.current === null) return;
    const events = this.batch;
    this.batch = [];
    this.parts.post({ type: "events", sessionId: this.current.id, events });
  }

  dispose(): void {
    if (this.timer !== null) clearTimeout(this.timer);
    if (this.heldTimer !== null) clearTimeout(this.heldTimer);
    for (const source of this.sources) source.dispose();
  }

  private take(event: EventNotification): void {
    const { current } = this;
    if (current === null || current.reading || current.untold) return;
    if (this.isOf(current.id, event)) this.push(event);
  }

  /** Whether something happened in a session, or in a sub-agent of it that runs. */
  private isOf(id: string, { sessionId }: EventNotification): boolean {
    return sessionId === id || this.parts.events.parentOf(sessionId) === id;
  }

  private push(event: EventNotification): void {
    this.batch.push(event);
    this.timer ??= setTimeout(() => this.flush(), BATCH_MS);
  }

  private attach(sessionId: string, afterSeq: number): Promise<AttachResult> {
    return this.parts.client.request<AttachResult>("agentd/session/attach", { sessionId, afterSeq });
  }

  private get(sessionId: string, limit?: number): Promise<SessionGetResult> {
    return this.parts.client.request<SessionGetResult>("agentd/session/get", { sessionId, ...(limit === undefined ? {} : { limit }) });
  }

  /** A session as it is now, to be followed; one that another process holds as it can be read. `page`: its last messages. */
  private async read(sessionId: string, page: Promise<SessionGetResult> = this.get(sessionId)): Promise<Read> {
    const [meanwhile, behind]: [EventNotification[], EventNotification[]] = [[], []];
    let isBehind = false;
    const listening = [
      this.parts.client.onNotification<EventNotification>("agentd/event", (event) => {
        if (event.sessionId === sessionId && event.seq !== undefined) meanwhile.push(event);
      }),
      this.parts.events.on((event) => void (isBehind && this.isOf(sessionId, event) && behind.push(event))),
    ];
    try {
      const { seq } = await page;
      // At once: the second is answered as the first is on its way.
      const told = this.history(sessionId, seq);
      const whole = this.attach(sessionId, SNAPSHOT).then((answer) => ((isBehind = true), answer));
      const [before, { snapshot }] = await Promise.all([told, whole]);
      if (snapshot === undefined) throw new HostError("agentd did not tell the session.", { kind: "internal" });
      return { snapshot, history: joined(before, meanwhile, snapshot.seq), behind, held: false };
    } catch (error) {
      if (toCallError(error).kind !== "sessionLocked") throw error;
      return { snapshot: await this.get(sessionId), history: [], behind: [], held: true };
    } finally {
      for (const each of listening) each.dispose();
    }
  }

  /** The last events of a session, as many as are told at once. */
  private async history(sessionId: string, seq: number): Promise<EventNotification[]> {
    for (let count = HISTORY; count >= HISTORY_LEAST; count = Math.floor(count / 4)) {
      const { kind, events } = await this.attach(sessionId, Math.max(0, seq - count));
      if (kind === "replay") return (events ?? []) as unknown as EventNotification[];
    }
    return [];
  }

  /** Between a snapshot and what follows it nothing is awaited: what is sent next comes behind it. */
  private show({ snapshot, history, behind, held }: Read): Shown {
    const id = snapshot.session.sessionId;
    this.change({ id, held, reading: false, untold: false });
    const { events } = this.parts;
    events.known(id, Math.max(snapshot.seq, ...behind.flatMap(({ sessionId, seq }) => (sessionId === id ? (seq ?? []) : []))));
    for (const introduced of events.introductions(id)) if (!behind.includes(introduced)) this.push(introduced);
    for (const event of behind) this.push(event);
    if (held) this.waitForHeld(snapshot.session, this.number, 1);
    return { snapshot, ...(history.length > 0 ? { history } : {}), changes: this.parts.changes(snapshot) };
  }

  /** Goes on with a session as soon as the process that has it lets go. */
  private waitForHeld(session: Session, number: number, tries: number): void {
    if (tries === HELD_TOLD_AFTER) this.parts.held(session);
    this.heldTimer = setTimeout(() => void this.lookAtHeld(session, number, tries), tries < HELD_TOLD_AFTER ? HELD_MS : HELD_LATER_MS);
  }

  private async lookAtHeld(session: Session, number: number, tries: number): Promise<void> {
    const isOver = () => number !== this.number || this.current?.held !== true;
    if (isOver()) return;
    try {
      const now = await this.get(session.sessionId, 1);
      if (isOver()) return;
      if (now.session.lockedBy === undefined) {
        const read = await this.read(session.sessionId);
        if (isOver()) return;
        if (!read.held) return this.parts.post({ type: "session", shown: this.show(read) });
      }
    } catch (error) {
      if (toCallError(error).kind === "sessionNotFound") return this.clear();
    }
    if (!isOver()) this.waitForHeld(session, number, tries + 1);
  }

  private change(current: Current | null): void {
    if (this.heldTimer !== null) clearTimeout(this.heldTimer);
    this.heldTimer = null;
    this.batch = []; // of the one before, or part of the snapshot
    this.current = current;
    void this.parts.memory.update(KEPT, current?.id ?? null);
  }
}

function pause(milliseconds: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, milliseconds));
}

/** What was told up to `seq`, without a gap: what was replayed, then what came while the rest was read. */
function joined(before: EventNotification[], meanwhile: EventNotification[], seq: number): EventNotification[] {
  const all = [...before];
  for (const event of meanwhile) {
    const last = all.at(-1)?.seq ?? 0;
    if (event.seq === last + 1) all.push(event);
  }
  while (all.length > 0 && (all.at(-1)?.seq ?? 0) > seq) all.pop();
  return all.at(-1)?.seq === seq ? all : [];
}
