/** The files that prompts changed: followed by events, kept with the workspace, accepted and reverted. */
import * as vscode from "vscode";
import type { Change, Params, Result } from "../../shared/messages";
import type { AttachResult, EventNotification, SessionDiffResult, SessionRewindResult } from "../../shared/wire";
import type { Wire } from "../daemon";
import { after, counted, emptyRecord, firstOpen, said, withWords, type SessionRecord } from "./record";

const KEY = "agentd.changes";
const MAX_SESSIONS = 30;
const KEEP_DELAY_MS = 500;

export class Changes implements vscode.Disposable {
  private readonly records: Map<string, SessionRecord>;
  /** Sessions of which all is known: from their beginning on, or from their journal. */
  private readonly whole: Set<string>;
  private readonly counting = new Set<string>();
  private readonly changed = new vscode.EventEmitter<string>();
  private timer: NodeJS.Timeout | undefined;

  /** Tells a session's id when its changes are others than before. */
  readonly onDidChange = this.changed.event;

  constructor(private readonly client: Wire, private readonly kept: vscode.Memento, private readonly log: (line: string) => void) {
    this.records = new Map(kept.get<SessionRecord[]>(KEY, []).map((each) => [each.sessionId, each]));
    this.whole = new Set(this.records.keys());
  }

  dispose(): void {
    if (this.timer) this.keep();
    this.changed.dispose();
  }

  note(notification: EventNotification): void {
    const { sessionId, promptId, event } = notification;
    if (event.type === "session_changed" && notification.seq === 1) this.whole.add(sessionId);
    this.update(sessionId, (record) => after(record, notification));
    if (event.type === "files_changed" && promptId) void this.count(sessionId, promptId);
  }

  of(sessionId: string): Change[] {
    return (this.records.get(sessionId)?.changes ?? []).map((each) => ({
      ...each, sessionId, path: vscode.workspace.asRelativePath(vscode.Uri.parse(each.uri)),
    }));
  }

  /** What the user compares a file with: the earliest open change of it, and the session that made it. */
  open(uri: string): { sessionId: string; promptId: string } | undefined {
    for (const record of this.records.values()) {
      const change = firstOpen(record, uri);
      if (change) return { sessionId: record.sessionId, promptId: change.promptId };
    }
    return undefined;
  }

  /** A session that ran elsewhere or before this was kept: its events tell, where they are not too many. */
  async catchUp(sessionId: string): Promise<void> {
    if (this.records.has(sessionId) && this.whole.has(sessionId)) return;
    const attached = await this.client.request<AttachResult>("agentd/session/attach", { sessionId, afterSeq: 0 });
    this.whole.add(sessionId);
    if (attached.kind !== "replay") return;
    const replayed = ((attached.events ?? []) as unknown as EventNotification[]).reduce(after, emptyRecord(sessionId));
    const record = withWords(replayed, this.records.get(sessionId));
    this.update(sessionId, () => record);
    const prompts = new Set(record.changes.filter((each) => each.state === "open").map((each) => each.promptId));
    await Promise.all([...prompts].map((promptId) => this.count(sessionId, promptId)));
  }

  forget(sessionId: string): void {
    if (!this.records.delete(sessionId)) return;
    this.soon();
    this.changed.fire(sessionId);
  }

  accept({ sessionId, promptId, uri }: Params<"accept">): void {
    this.update(sessionId, (record) => said(record, promptId, uri, "accepted"));
  }

  /** Takes files back to before a prompt. The daemon does it, so that nothing the user did since is lost. */
  async revert({ sessionId, promptId, uri }: Params<"revert">): Promise<Result<"revert">> {
    const uris = uri === undefined ? this.openFiles(sessionId, promptId) : [uri];
    const { files } = await this.client.request<SessionRewindResult>("agentd/session/rewind", { sessionId, promptId, scope: "files", uris });
    return { files };
  }

  /** All hunks of a file are decided: whether as they were before or as they are now. */
  settle(sessionId: string, uri: string, state: "accepted" | "reverted"): void {
    this.update(sessionId, (record) => ({
      ...record, changes: record.changes.map((each) => (each.uri === uri && each.state === "open" ? { ...each, state } : each)),
    }));
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
    this.records.delete(sessionId); // The latest stand last, the oldest go first.
    this.records.set(sessionId, then);
    this.soon();
    if (then.changes !== before.changes) this.changed.fire(sessionId);
  }

  private soon(): void {
    this.timer ??= setTimeout(() => this.keep(), KEEP_DELAY_MS);
  }

  private keep(): void {
    clearTimeout(this.timer);
    this.timer = undefined;
    void this.kept.update(KEY, [...this.records.values()].filter((each) => each.changes.length > 0).slice(-MAX_SESSIONS));
  }
}
