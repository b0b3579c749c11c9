/**
 * What the agent did to each file that is under review, told apart from what the user did to it (`attribution.ts`).
 *
 * Edits of an open document are seen as they are applied; what is written on disk comes with the events of its tool; what
 * was there before this window looked is made of what the daemon keeps of each prompt. What another program or a command
 * writes under an open document is the agent's while a prompt runs, as it is for the daemon, and else the user's.
 */
import { randomUUID } from "node:crypto";
import * as vscode from "vscode";
import type { ApplyWorkspaceEditParams } from "vscode-languageclient/node";
import type { EventNotification, FileChange, SessionDiffResult } from "../../shared/wire";
import type { Wire } from "../daemon";
import { accepting, acceptedOf, placesOf, withAgent, withUser, type Place, type Track } from "./attribution";
import type { Changes } from "./changes";
import { applied, edited, plain } from "./edits";
import type { Hunk } from "./hunks";
import type { Originals } from "./originals";
import { patchOf } from "./patches";
import { cameTo, Runs, stepsOf, type Run, type Step } from "./runs";
import { isTooLong, MAX_LENGTH, type Kept, type TrackStore } from "./trackStore";
import { documentOf, keyOf } from "./uris";

const LOOK_DELAY_MS = 100;
const MAX_TRIES = 5;
/** So many of the places that were accepted of a file are kept for other windows to hear of. */
const MAX_ACCEPTED = 200;

/** A file under review as it is now; `base` has `\n` as line ends. */
export interface Reviewed {
  sessionId: string;
  promptId: string;
  /** What the daemon calls the file. */
  uri: string;
  /** Without what the agent did there is no such file. */
  isNew: boolean;
  /** Whether the agent's part is known; else all that is not as before the prompt counts as its part. */
  isSure: boolean;
  base: string;
  places: Place[];
}

/** An edit of the daemon's that VS Code is about to make, or has made while its tool still runs. */
interface Touched {
  before: Kept | undefined;
  /** Whether the track took part in it. */
  isNoted: boolean;
}

export class Tracks implements vscode.Disposable {
  /** The text of documents that have a track, as it was last. */
  private readonly texts = new Map<string, string>();
  /** New names of files that the daemon has VS Code move: it tells of that itself. */
  private readonly movedByAgent = new Set<string>();
  private readonly coming = new Map<string, { before: string; after: string }>();
  private readonly touched = new Map<string, Touched>();
  private readonly runs = new Runs();
  /** Files of which the daemon is asked what a run came to: what changes on disk meanwhile is of that run. */
  private readonly awaited = new Set<string>();
  private readonly building = new Map<string, Promise<Kept | undefined>>();
  /** How often the agent did something to a file: what is built of what it did before is not up to date. */
  private readonly counts = new Map<string, number>();
  private readonly toLookAt = new Set<vscode.TextDocument>();
  private readonly changed = new vscode.EventEmitter<void>();
  private readonly subscription: vscode.Disposable;
  private timer: NodeJS.Timeout | undefined;

  /** What is offered in some file may be other than before. */
  readonly onDidChange = this.changed.event;

  constructor(
    private readonly client: Wire, private readonly changes: Changes, private readonly originals: Originals,
    private readonly store: TrackStore, private readonly log: (line: string) => void,
  ) {
    this.subscription = vscode.Disposable.from(
      vscode.workspace.onDidChangeTextDocument((event) => this.follow(event)),
      vscode.workspace.onDidCloseTextDocument(({ uri }) => this.close(uri.toString())),
      vscode.workspace.onDidRenameFiles(({ files }) => files.forEach((each) => this.moved(each.oldUri.toString(), each.newUri.toString()))),
      changes.onDidChange((sessionId) => this.dropDecided(sessionId)),
      changes.onMissed((event) => this.note(event)),
    );
  }

  dispose(): void {
    clearTimeout(this.timer);
    this.subscription.dispose();
    this.changed.dispose();
    this.store.dispose();
  }

  /** The daemon has ended, and with it all that ran. */
  reset(): void {
    this.runs.clear();
    this.touched.clear();
  }

  // --- what is asked ----------------------------------------------------------------------------------

  /** A document with what is offered in it; undefined where nothing is. Fails where the daemon does not tell. */
  async of(document: vscode.TextDocument): Promise<Reviewed | undefined> {
    await this.store.loaded;
    const uri = document.uri.toString();
    let track = this.store.get(uri);
    const open = this.changes.open(uri, track?.sessionId);
    if (!open) return undefined;
    const isOf = (track: Kept | undefined): track is Kept => track?.sessionId === open.sessionId && track.promptId === open.promptId;
    if (track && track.sessionId === undefined) track = this.put({ ...track, sessionId: open.sessionId, promptId: open.promptId });
    if (document.getText().length > MAX_LENGTH) return undefined;
    if (!isOf(track)) track = await this.build(uri, open, document);
    const now = plain(document.getText()); // as it is when all else is known: what is done with the places is done to it
    if (!track || isTooLong(track) || now.length > MAX_LENGTH) return undefined;
    track = this.put({ ...track, ...withUser(track, now) });
    this.texts.set(uri, now);
    const { isNew, isSure, base } = track;
    return { ...open, isNew: isNew && base === "", isSure, base, places: placesOf(track, now) };
  }

  /** Accepts a place of a document as it is now. */
  accept(document: vscode.TextDocument, place: Hunk): void {
    const track = this.store.get(document.uri.toString());
    if (!track) return;
    const now = plain(document.getText());
    const known = [...(track.accepted ?? []).slice(1 - MAX_ACCEPTED), { id: randomUUID(), ...acceptedOf(track, now, place) }];
    this.put({ ...track, ...accepting(track, now, place), isAccepted: true, accepted: known });
    this.count(track.uri);
    this.runs.cut(track.uri);
    void this.store.keep(); // the window may be gone in a moment
    this.settle(document);
  }

  /** Accepts all that is offered in a file. `uri`: what the daemon calls it. */
  acceptFile({ sessionId, uri }: { sessionId: string; uri: string }): void {
    const place = keyOf(this.changes.placeNow(uri));
    const track = this.store.get(place);
    this.changes.settle([sessionId, ...(track ? this.sessionsOf(track) : [])], place, "accepted");
  }

  /** Says of a file whose places are all decided that it is, and of one that has some again that it is open. */
  settle(document: vscode.TextDocument): void {
    const uri = document.uri.toString();
    const track = this.store.get(uri);
    if (track?.sessionId === undefined || track.promptId === undefined || this.awaited.has(uri)) return;
    const now = plain(document.getText());
    if (now.length > MAX_LENGTH) return;
    // What the user writes where all is settled is no reason to decide again; the agent's own text, brought back, is.
    const isOpen = placesOf(withUser(track, now), now).some((each) => !track.isSettled || !each.isShared);
    if (isOpen === !track.isSettled) return;
    this.put({ ...track, isSettled: !isOpen });
    if (isOpen) this.changes.reopen(track.sessionId, track.promptId, uri);
    else this.changes.settle(this.sessionsOf(track), uri, track.isAccepted ? "accepted" : "reverted");
  }

  /** Another window has accepted something of a file. */
  merged(uri: string): void {
    this.count(uri);
    this.runs.cut(uri);
    const document = documentOf(uri);
    if (document) this.lookSoon(document);
    this.changed.fire();
  }

  forget(sessionId: string): void {
    for (const track of this.store.all()) if (track.sessionId === sessionId) this.drop(track.uri);
  }

  // --- what happens -----------------------------------------------------------------------------------

  /** Stands around VS Code's applying of an edit of the daemon's. */
  async applying<R>(params: ApplyWorkspaceEditParams, apply: () => R | Thenable<R>): Promise<R> {
    const uris: string[] = [];
    for (const change of params.edit.documentChanges ?? []) {
      if ("kind" in change && change.kind === "rename") this.movedByAgent.add(keyOf(change.newUri));
      if (!("textDocument" in change)) continue;
      const uri = keyOf(change.textDocument.uri);
      const document = documentOf(uri);
      const after = document && edited(document, change);
      if (!document || after === undefined) continue;
      this.coming.set(uri, { before: plain(document.getText()), after });
      uris.push(uri);
    }
    try {
      return await apply();
    } finally {
      for (const uri of uris) this.coming.delete(uri);
    }
  }

  /** An event of a session, which `changes` has noted already. */
  note(notification: EventNotification): void {
    const { sessionId, promptId, seq, event } = notification;
    if (event.type === "agent_start") this.runs.begin(sessionId, promptId);
    else if (event.type === "agent_end") this.ended(sessionId);
    else if (event.type === "tool_execution_end" && event.result.details?.type === "edit" && !event.result.isError) {
      for (const file of event.result.details.files) this.toolEnded(sessionId, seq, file);
    } else if (event.type === "files_changed" && promptId) {
      for (const { uri } of event.files) void this.runEnded(sessionId, promptId, keyOf(uri));
    } else if (event.type === "session_rewound") {
      for (const { uri, conflict } of event.files) if (conflict === undefined) this.rewound(keyOf(uri), event.scope === "files");
    }
  }

  private follow({ document, contentChanges, reason }: vscode.TextDocumentChangeEvent): void {
    if (contentChanges.length === 0) return;
    const uri = document.uri.toString();
    const [track, coming] = [this.store.get(uri), this.coming.get(uri)];
    if (!track && !coming) return;
    const now = plain(document.getText());
    if (coming?.after === now) {
      this.coming.delete(uri);
      this.byAgent(uri, coming.before, now);
    } else if (track) {
      // Nobody types a text that is the one on disk: it was read from there.
      const isRead = !document.isDirty && reason === undefined;
      if (isRead && (this.runs.isAny || this.awaited.has(uri))) this.byCommand(track, now);
      else this.lookSoon(document);
    }
    if (this.store.get(uri)) this.texts.set(uri, now);
  }

  private ended(sessionId: string): void {
    this.runs.end(sessionId);
    if (!this.runs.isAny) this.movedByAgent.clear();
  }

  private moved(from: string, to: string): void {
    if (this.movedByAgent.delete(to)) return;
    for (const track of this.store.all()) {
      if (track.uri !== from && !track.uri.startsWith(`${from}/`)) continue;
      this.store.delete(track.uri);
      this.put({ ...track, uri: to + track.uri.slice(from.length) });
    }
    this.changes.moved(from, to);
  }

  private byAgent(uri: string, before: string, after: string): void {
    const track = this.store.get(uri);
    this.count(uri);
    this.runs.of(uri, track).last = after;
    if (this.touched.get(uri) === undefined) this.touched.set(uri, { before: track, isNoted: true });
    if (track && !track.isSettled) this.put({ ...track, ...withAgent(track, before, after) });
    else if (this.changes.open(uri) || before.length > MAX_LENGTH) this.touched.set(uri, { before: track, isNoted: false });
    else this.put({ uri, isNew: false, isSure: true, isAccepted: false, isSettled: false, seqs: {}, base: before, seen: after });
  }

  private byCommand(track: Kept, now: string): void {
    this.count(track.uri);
    this.runs.of(track.uri, track).last = now;
    this.put({ ...track, ...withAgent(track, this.texts.get(track.uri) ?? track.seen, now) });
  }

  private toolEnded(sessionId: string, seq: number | undefined, file: FileChange): void {
    const uri = keyOf(file.uri);
    const touched = this.touched.get(uri);
    this.touched.delete(uri);
    this.count(uri);
    const track = this.store.get(uri);
    if (!track || (seq !== undefined && seq <= (track.seqs[sessionId] ?? 0))) return;
    this.runs.of(uri, this.startOf(sessionId, track)).sessionId = sessionId;
    const seqs = seq === undefined ? track.seqs : { ...track.seqs, [sessionId]: seq };
    if (touched?.isNoted) {
      this.put({ ...track, ...this.ownerOf(track, sessionId), isSettled: false, seqs });
      return;
    }
    const seen = touched || track.isSettled || file.action !== "changed" ? false : applied(track.seen, file.patch);
    if (seen === false) this.drop(uri);
    else this.put({ ...track, seen, seqs });
  }

  /** What commands did to a file shows in what the run came to: it is in no tool's result. */
  private async runEnded(sessionId: string, promptId: string, uri: string): Promise<void> {
    const track = this.store.get(uri);
    this.count(uri);
    if (track && !this.isOfAnother(uri, sessionId)) {
      const run = this.runs.take(uri) ?? { start: this.startOf(sessionId, track) };
      await this.correct(sessionId, promptId, uri, run);
    }
    const document = documentOf(uri);
    if (document) this.lookSoon(document); // the user may have decided all of it meanwhile
    this.changed.fire();
  }

  private async correct(sessionId: string, promptId: string, uri: string, run: Run): Promise<void> {
    const count = this.counts.get(uri);
    this.awaited.add(uri);
    try {
      const { steps } = await this.work(sessionId, promptId, uri);
      const now = this.store.get(uri);
      const after = steps?.at(-1)?.[1];
      if (!now || !steps || after === undefined) return;
      // What is in the editor alone is in nothing that the disk holds.
      const document = documentOf(uri);
      if (document?.isDirty && plain(document.getText()) !== after) return;
      // Of a file that was not open all is known anew, but for what has happened to it since.
      if (run.last === undefined && count !== this.counts.get(uri)) return;
      this.put({ ...now, ...cameTo(run, now, steps) });
    } catch (error) {
      this.log(`What the prompt came to in ${uri} is not known: ${String(error)}`);
      this.drop(uri);
    } finally {
      this.awaited.delete(uri);
    }
  }

  /** Whether another session edited a file last: its edit is in the track, and in nothing that the daemon tells of this one. */
  private isOfAnother(uri: string, sessionId: string): boolean {
    if (this.touched.has(uri) && !this.runs.isOne) return true;
    const last = this.runs.get(uri)?.sessionId;
    return last !== undefined && this.changes.rootOf(last) !== sessionId;
  }

  /** The sessions that a track knows of. */
  private sessionsOf(track: Kept): string[] {
    const known = Object.keys(track.seqs).map((each) => this.changes.rootOf(each));
    return [...new Set(track.sessionId === undefined ? known : [track.sessionId, ...known])];
  }

  private rewound(uri: string, mayComeBack: boolean): void {
    const touched = this.touched.get(uri);
    this.touched.delete(uri);
    this.runs.take(uri);
    this.count(uri);
    const track = this.store.get(uri);
    const open = this.changes.open(uri);
    if (open && track && touched?.isNoted) this.put({ ...track, isSettled: false });
    // An undo in the editor brings back the text, and with it what there is to decide.
    else if (!open && touched?.before && mayComeBack) this.put({ ...touched.before, isSettled: true });
    else this.drop(uri);
  }

  // --- what is known ----------------------------------------------------------------------------------

  /** Made of what the daemon keeps of each prompt whose change is open. */
  private build(uri: string, open: { sessionId: string; promptId: string; uri: string }, document: vscode.TextDocument): Promise<Kept | undefined> {
    let building = this.building.get(uri);
    if (!building) {
      building = this.built(uri, open, document).finally(() => this.building.delete(uri));
      this.building.set(uri, building);
    }
    return building;
  }

  private async built(uri: string, open: { sessionId: string; promptId: string; uri: string }, document: vscode.TextDocument): Promise<Kept | undefined> {
    const { sessionId, promptId } = open;
    for (let tries = 0; ; tries++) {
      const count = this.counts.get(uri);
      let [track, isNew, isSure] = [undefined as Track | undefined, false, true];
      const prompts = this.changes.openPrompts(sessionId, promptId, uri);
      for (const each of prompts) {
        const { before, steps } = await this.work(sessionId, each, uri);
        if (track === undefined) [track, isNew] = [{ base: before ?? "", seen: before ?? "" }, before === null];
        track = (steps ?? []).reduce<Track>((all, [from, to]) => withAgent(all, from, to), track);
        isSure &&= steps !== undefined;
      }
      if (!track) return undefined;
      if (count !== this.counts.get(uri) && tries < MAX_TRIES) continue;
      if (!isSure) track = { ...track, seen: plain(document.getText()) };
      this.count(uri);
      this.runs.cut(uri, this.runs.isIn(sessionId, prompts));
      return this.put({ uri, sessionId, promptId, isNew, isSure, isAccepted: false, isSettled: false, seqs: {}, ...track });
    }
  }

  /**
   * A file before a prompt (null: there was none), and what the agent made of which text in it, one after the other:
   * between them it was others. Undefined: that is not known.
   */
  private async work(sessionId: string, promptId: string, uri: string): Promise<{ before: string | null; steps: Step[] | undefined }> {
    const named = this.changes.nameOf(sessionId, promptId, uri);
    const [original, diff] = await Promise.all([
      this.originals.text({ sessionId, promptId, uri: named }),
      this.client.request<SessionDiffResult>("agentd/session/diff", { sessionId, promptId }),
    ]);
    const before = original === null ? null : plain(original);
    const file = diff.files.find((each) => each.uri === named);
    if (!file) return { before, steps: before === null ? undefined : [[before, before]] };
    const patch = file.steps ? undefined : patchOf(diff.patch, vscode.Uri.parse(named).path);
    const steps = file.steps ?? (patch === undefined ? [] : [{ by: "agentd" as const, patch }]);
    return { before, steps: stepsOf(before ?? "", steps) };
  }

  private ownerOf(track: Kept, sessionId: string): { sessionId?: string; promptId?: string } {
    const open = track.sessionId === undefined ? this.changes.open(track.uri, this.changes.rootOf(sessionId)) : undefined;
    return open ? { sessionId: open.sessionId, promptId: open.promptId } : {};
  }

  private put(track: Kept): Kept {
    if (isTooLong(track)) {
      if (this.store.get(track.uri)) this.drop(track.uri);
      return track;
    }
    return this.store.put(track);
  }

  private drop(uri: string): void {
    this.store.delete(uri);
    this.texts.delete(uri);
    this.runs.take(uri);
    this.changed.fire();
  }

  private count(uri: string): void {
    this.counts.set(uri, (this.counts.get(uri) ?? 0) + 1);
  }

  /** The track before the run that a session is in; where this did not hear of its beginning, some of it may be in it. */
  private startOf(sessionId: string, track: Kept): Kept | undefined {
    return this.runs.has(sessionId) ? track : undefined;
  }

  private lookSoon(document: vscode.TextDocument): void {
    this.toLookAt.add(document);
    this.timer ??= setTimeout(() => {
      this.timer = undefined;
      const documents = [...this.toLookAt].filter((each) => !each.isClosed);
      this.toLookAt.clear();
      for (const each of documents) this.settle(each);
    }, LOOK_DELAY_MS);
  }

  /** With its document the steps that could bring it back are gone. */
  private close(uri: string): void {
    this.texts.delete(uri);
    if (this.store.get(uri)?.isSettled) this.drop(uri);
  }

  private dropDecided(sessionId: string): void {
    for (const track of this.store.all()) {
      if (track.sessionId === sessionId && !track.isSettled && !this.changes.open(track.uri)) this.drop(track.uri);
    }
  }
}
