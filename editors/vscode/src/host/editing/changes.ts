/** The files that prompts changed: followed by events, kept with the workspace, accepted and reverted. */
import { readFileSync } from "node:fs";
import * as vscode from "vscode";
import type { Change, Params, Result } from "../../shared/messages";
import type { AttachResult, EventNotification, SessionDiffResult, SessionRewindResult } from "../../shared/wire";
import type { Wire } from "../daemon";
import { after, counted, emptyRecord, firstOpen, mergedRecords, moved, openPrompts, placeOf, reopened, said, settled, withSeq, withWords, type SessionRecord } from "./record";
import { alone, readable, replace } from "./sharedFile";
import { keyOf } from "./uris";

const MAX_SESSIONS = 30;
const KEEP_DELAY_MS = 500;

export class Changes implements vscode.Disposable {
  private readonly records: Map<string, SessionRecord>;
  /** Sessions of which all is known: from their beginning on, or from their journal. */
  private readonly whole: Set<string>;
  private readonly counting = new Set<string>();
  private readonly changed = new vscode.EventEmitter<string>();
  private readonly missed = new vscode.EventEmitter<EventNotification>();
  /** The prompt that runs in a session: what a sub-agent changes belongs to its parent's. */
  private readonly running = new Map<string, string>();
  /** By session the numbers of events that are in its record though one before them is not. */
  private readonly ahead = new Map<string, Set<number>>();
  private timer: NodeJS.Timeout | undefined;
  /** What stood in the file when it was last read or written here. */
  private before: SessionRecord[];
  private writing: Promise<void> = Promise.resolve();

  /** Tells a session's id when its changes are others than before. */
  readonly onDidChange = this.changed.event;
  /** Tells what happened in a session while nobody listened, once it is known. */
  readonly onMissed = this.missed.event;

  /**
   * @param file where they are kept, which other windows on the workspace write as well
   * @param parentOf the session whose sub-agent a session is
   */
  constructor(
    private readonly client: Wire, private readonly file: string, private readonly log: (line: string) => void,
    private readonly parentOf: (sessionId: string) => string | null = () => null,
  ) {
    this.before = this.read();
    this.records = new Map(this.before.map((each) => [each.sessionId, each]));
    this.whole = new Set(this.records.keys());
  }

  dispose(): void {
    if (this.timer) void this.keep();
    this.changed.dispose();
    this.missed.dispose();
  }

  note(notification: EventNotification): void {
    const { sessionId, promptId, event } = notification;
    const parent = this.parentOf(sessionId);
    if (parent !== null) {
      const running = this.running.get(parent);
      if (running !== undefined && event.type === "tool_execution_end") {
        this.update(parent, (record) => after(record, { ...notification, sessionId: parent, promptId: running }));
      }
      return;
    }
    if (event.type === "agent_start" && promptId) this.running.set(sessionId, promptId);
    if (event.type === "session_changed" && notification.seq === 1) this.whole.add(sessionId);
    this.update(sessionId, (record) => withSeq(after(record, notification), notification.seq));
    const [{ seq }, known] = [notification, this.records.get(sessionId)?.seq];
    if (seq !== undefined && known !== undefined && seq > known) this.ahead.set(sessionId, (this.ahead.get(sessionId) ?? new Set()).add(seq));
    if (event.type === "files_changed" && promptId) void this.count(sessionId, promptId);
  }

  of(sessionId: string): Change[] {
    return (this.records.get(sessionId)?.changes ?? []).map(({ movedTo, ...each }) => ({
      ...each, sessionId, path: vscode.workspace.asRelativePath(vscode.Uri.parse(movedTo ?? each.uri)),
    }));
  }

  /**
   * What the user compares a file with: the earliest open change of it, and the session that made it. `uri` is what
   * the daemon calls the file.
   *
   * @param sessionId the session whose change it is, where that has an open one
   */
  open(uri: string, sessionId?: string): { sessionId: string; promptId: string; uri: string } | undefined {
    const key = keyOf(uri);
    const first = sessionId === undefined ? undefined : this.records.get(sessionId);
    for (const record of [...(first ? [first] : []), ...this.records.values()]) {
      const change = firstOpen(record, key);
      if (change) return { sessionId: record.sessionId, promptId: change.promptId, uri: change.uri };
    }
    return undefined;
  }

  /** The session to which what a session changes belongs: a sub-agent's is its parent's. */
  rootOf(sessionId: string): string {
    return this.parentOf(sessionId) ?? sessionId;
  }

  /** The prompts of a session whose changes of a file are open, from one on, in their order. */
  openPrompts(sessionId: string, promptId: string, uri: string): string[] {
    const record = this.records.get(sessionId);
    return record ? openPrompts(record, promptId, keyOf(uri)) : [];
  }

  /** What the daemon calls a file in what a prompt did to it. */
  nameOf(sessionId: string, promptId: string, uri: string): string {
    const place = keyOf(uri);
    return this.records.get(sessionId)?.changes.find((each) => each.promptId === promptId && placeOf(each) === place)?.uri ?? uri;
  }

  /** Where a file is now that a session changed, by what the daemon calls it. */
  placeNow(uri: string): string {
    for (const record of this.records.values()) {
      const change = record.changes.find((each) => each.uri === uri && each.movedTo !== undefined);
      if (change) return placeOf(change);
    }
    return uri;
  }

  /** The user has moved a file or a folder. */
  moved(from: string, to: string): void {
    for (const sessionId of [...this.records.keys()]) this.update(sessionId, (record) => moved(record, keyOf(from), keyOf(to)));
  }

  /** A session that ran elsewhere or before this was kept: its events tell, where they are not too many. */
  async catchUp(sessionId: string): Promise<void> {
    const known = this.whole.has(sessionId) ? this.records.get(sessionId) : undefined;
    const attached = await this.client.request<AttachResult>("agentd/session/attach", { sessionId, afterSeq: known?.seq ?? 0 });
    this.whole.add(sessionId);
    if (attached.kind !== "replay") return;
    const events = (attached.events ?? []) as unknown as EventNotification[];
    const last = events.at(-1)?.seq;
    if (known?.seq !== undefined) {
      const isNews = ({ seq }: EventNotification) =>
        seq === undefined || (seq > (this.records.get(sessionId)?.seq ?? 0) && this.ahead.get(sessionId)?.has(seq) !== true);
      for (const event of events.filter(isNews)) {
        this.note(event);
        this.missed.fire(event);
      }
      this.ahead.delete(sessionId);
      this.update(sessionId, (record) => withSeq(record, Math.max(record.seq ?? 0, last ?? 0), true));
      return;
    }
    const replayed = withSeq(events.reduce(after, emptyRecord(sessionId)), last, true);
    const record = withWords(replayed, this.records.get(sessionId));
    this.update(sessionId, () => record);
    const prompts = new Set(record.changes.filter((each) => each.state === "open").map((each) => each.promptId));
    await Promise.all([...prompts].map((promptId) => this.count(sessionId, promptId)));
  }

  forget(sessionId: string): void {
    this.ahead.delete(sessionId);
    if (!this.records.delete(sessionId)) return;
    this.soon();
    this.changed.fire(sessionId);
  }

  /** Accepts a file with all that the session did to it, or all files of a prompt. */
  accept({ sessionId, promptId, uri }: Params<"accept">): void {
    if (uri !== undefined) return this.settle([sessionId], this.placeNow(uri), "accepted");
    this.update(sessionId, (record) => said(record, promptId, uri, "accepted"));
    void this.keep(); // the window may be gone in a moment
  }

  /** Takes files back to before a prompt. The daemon does it, so that nothing the user did since is lost. */
  async revert({ sessionId, promptId, uri }: Params<"revert">): Promise<Result<"revert">> {
    const uris = uri === undefined ? this.openFiles(sessionId, promptId) : [uri];
    const { files } = await this.client.request<SessionRewindResult>("agentd/session/rewind", { sessionId, promptId, scope: "files", uris });
    return { files };
  }

  /** All places of a file that sessions changed are decided: whether as they were before or as they are now. */
  settle(sessionIds: string[], uri: string, state: "accepted" | "reverted"): void {
    for (const sessionId of sessionIds) if (this.records.has(sessionId)) this.update(sessionId, (record) => settled(record, keyOf(uri), state));
    void this.keep();
  }

  /** What was decided of a file, from a prompt on, is to be decided again. */
  reopen(sessionId: string, promptId: string, uri: string): void {
    this.update(sessionId, (record) => reopened(record, promptId, keyOf(uri)));
  }

  private openFiles(sessionId: string, promptId: string): string[] {
    return this.of(sessionId).filter((each) => each.promptId === promptId && each.state === "open").map((each) => each.uri);
  }

  private async count(sessionId: string, promptId: string): Promise<void> {
    const key = `${sessionId} ${promptId}`;
    if (this.counting.has(key)) return;
    this.counting.add(key);
    try {
      const diff = await this.client.request<SessionDiffResult>("agentd/session/diff", { sessionId, promptId });
      this.update(sessionId, (record) => counted(record, promptId, diff));
    } catch (error) {
      this.log(`The lines changed by prompt ${promptId} could not be counted: ${String(error)}`);
    } finally {
      this.counting.delete(key);
    }
  }

  private update(sessionId: string, change: (record: SessionRecord) => SessionRecord): void {
    const before = this.records.get(sessionId) ?? emptyRecord(sessionId);
    const then = change(before);
    if (then === before) return;
    const isMore = then.changes !== before.changes || then.prompts !== before.prompts;
    if (isMore) this.records.delete(sessionId); // The latest stand last, the oldest go first.
    this.records.set(sessionId, then);
    if (isMore) this.soon(); // a number alone is no loss
    if (then.changes !== before.changes) this.changed.fire(sessionId);
  }

  private soon(): void {
    this.timer ??= setTimeout(() => void this.keep(), KEEP_DELAY_MS);
  }

  /** Writes what has changed, now, and takes over what other windows have written since. */
  keep(): Promise<void> {
    clearTimeout(this.timer);
    this.timer = undefined;
    return this.inTurn(() => alone(`${this.file}.lock`, async () => {
      await this.takeOver();
      const records = [...this.records.values()].filter((each) => each.changes.length > 0).slice(-MAX_SESSIONS);
      await replace(this.file, JSON.stringify(records));
      this.before = records;
    }));
  }

  /** Takes over what other windows have written since. */
  look(): Promise<void> {
    return this.inTurn(() => this.takeOver());
  }

  private inTurn(work: () => Promise<void>): Promise<void> {
    this.writing = this.writing.then(work).catch((error: unknown) => {
      this.log(`What is decided of files is not kept: ${error instanceof Error ? error.message : String(error)}`);
    });
    return this.writing;
  }

  private async takeOver(): Promise<void> {
    const theirs = await readable(this.file);
    if (!areRecords(theirs) || JSON.stringify(theirs) === JSON.stringify(this.before)) return;
    const mine = [...this.records.values()];
    const both = mergedRecords(this.before, mine, theirs, theirs.length >= MAX_SESSIONS);
    this.before = theirs;
    this.records.clear();
    for (const each of both) this.records.set(each.sessionId, each);
    const news = both.filter((each) => !mine.includes(each)).concat(mine.filter(({ sessionId }) => !this.records.has(sessionId)));
    for (const { sessionId } of news) this.changed.fire(sessionId);
  }

  private read(): SessionRecord[] {
    try {
      const records: unknown = JSON.parse(readFileSync(this.file, "utf8"));
      if (areRecords(records)) return records;
      this.log("What was decided of files cannot be read.");
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "ENOENT") this.log(`What was decided of files cannot be read: ${String(error)}`);
    }
    return [];
  }
}

function areRecords(value: unknown): value is SessionRecord[] {
  return Array.isArray(value) && value.every((each: Partial<SessionRecord> | null) =>
    typeof each?.sessionId === "string" && Array.isArray(each.prompts) && Array.isArray(each.changes));
}
