import { mkdtempSync, rmSync, statSync, readdirSync, utimesSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createTwoFilesPatch } from "diff";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { Changes } from "../../src/host/editing/changes";
import { linesOf } from "../../src/host/editing/hunks";
import { Originals } from "../../src/host/editing/originals";
import { Review } from "../../src/host/editing/review";
import { Tracks } from "../../src/host/editing/tracks";
import { TrackStore } from "../../src/host/editing/trackStore";
import { PlayedDaemon } from "../host/wire";
import { Document, renamed, workspace } from "./vscode";

vi.mock("vscode", () => import("./vscode"));

const URI = "file:///w/a.txt";
const BEFORE = "1\n2\n3\n4\n5\n6\n7\n";

/** A window on a workspace, with a daemon whose prompts made these texts of the file. */
class Window {
  readonly daemon = new PlayedDaemon();
  readonly log: string[] = [];
  readonly changes: Changes;
  readonly store: TrackStore;
  readonly tracks: Tracks;
  readonly review: Review;
  /** Before and after each prompt, as the daemon keeps it. */
  readonly prompts = new Map<string, [string | null, string | null]>();
  /** Texts through which a prompt came to its last one, by turns the agent's and others' doing. */
  readonly through = new Map<string, string[]>();
  private readonly seqs = new Map<string, number>();

  constructor(disk: { folder: string }) {
    const log = (line: string) => void this.log.push(line);
    this.daemon.known.set("agentd/session/original", ({ promptId }: { promptId: string }) => ({ text: this.prompts.get(promptId)?.[0] ?? null }));
    this.daemon.known.set("agentd/session/diff", ({ promptId }: { promptId: string }) => this.diff(promptId));
    this.changes = new Changes(this.daemon, join(disk.folder, "..", "changes.json"), log);
    this.store = new TrackStore(disk.folder, log, (uri) => this.tracks.merged(uri));
    const originals = new Originals(this.daemon);
    this.tracks = new Tracks(this.daemon, this.changes, originals, this.store, log);
    this.review = new Review(this.changes, this.tracks, log);
  }

  private diff(promptId: string): object {
    const [before, after] = this.prompts.get(promptId) ?? [null, null];
    const patch = after === null ? "" : patchOf(before ?? "", after);
    const texts = this.through.get(promptId);
    const steps = texts?.slice(1).map((text, at) => ({ by: at % 2 === 0 ? "agentd" : "others", patch: patchOf(texts[at]!, text) }));
    return { patch, files: [{ uri: URI, action: "changed", additions: 1, deletions: 1, ...(steps ? { steps } : {}) }] };
  }

  tell(promptId: string | undefined, event: object, sessionId = "s"): void {
    const seq = (this.seqs.get(sessionId) ?? 0) + 1;
    this.seqs.set(sessionId, seq);
    const notification = { sessionId, promptId, seq, time: "", event } as never;
    this.changes.note(notification);
    this.tracks.note(notification);
  }

  begins(promptId: string): void {
    this.tell(promptId, { type: "agent_start" });
  }

  ends(promptId: string): void {
    this.tell(promptId, { type: "files_changed", files: [{ uri: URI, action: "changed" }] });
    this.tell(promptId, { type: "agent_end" });
  }

  /** As `ends`, until what the prompt came to is known. */
  async hasEnded(promptId: string): Promise<void> {
    const known = new Promise<void>((resolve) => this.tracks.onDidChange(resolve));
    this.ends(promptId);
    await known;
  }

  toolEnds(promptId: string, before: string, after: string, sessionId?: string): void {
    const file = { uri: URI, action: "changed", patch: patchOf(before, after), additions: 1, deletions: 1 };
    this.tell(promptId, { type: "tool_execution_end", result: { isError: false, details: { type: "edit", files: [file] } } }, sessionId);
  }

  /** The daemon has VS Code edit an open document, whole lines by whole lines. */
  async applies(document: Document, after: string, version = document.version): Promise<void> {
    const range = { start: { line: 0, character: 0 }, end: { line: document.lineCount - 1, character: linesOf(document.getText()).at(-1)!.endsWith("\n") ? 0 : 99 } };
    const edit = { documentChanges: [{ textDocument: { uri: URI, version }, edits: [{ range, newText: after }] }] };
    await this.tracks.applying({ edit } as never, async () => document.becomes(after, true));
  }

  async edits(promptId: string, document: Document, after: string, sessionId?: string): Promise<void> {
    const before = document.getText();
    this.prompts.set(promptId, [this.prompts.get(promptId)?.[0] ?? before, after]);
    await this.applies(document, after);
    this.toolEnds(promptId, before, after, sessionId);
  }

  /** What is offered: what stood at each place, what stands there, and whether others changed it as well. */
  async offered(document: Document): Promise<[string, string, boolean][] | undefined> {
    const reviewed = await this.tracks.of(document as never);
    return reviewed?.places.map((each) => [
      linesOf(reviewed.base).slice(each.oldStart, each.oldStart + each.oldLines).join(""),
      linesOf(document.getText()).slice(each.newStart, each.newStart + each.newLines).join(""), each.isShared,
    ]);
  }

  async accepts(document: Document, number: number): Promise<void> {
    this.tracks.accept(document as never, (await this.tracks.of(document as never))!.places[number]!);
  }

  states(sessionId = "s"): string[] {
    return this.changes.of(sessionId).map((each) => each.state);
  }

  async close(): Promise<void> {
    this.review.dispose();
    this.tracks.dispose();
    this.changes.dispose();
    await Promise.all([this.store.keep(), this.changes.keep()]);
  }
}

const patchOf = (before: string, after: string): string => createTwoFilesPatch("a/a.txt", "b/a.txt", before, after);

const disk = { folder: "" };
let windows: Window[] = [];

function opened(): Window {
  const window = new Window(disk);
  windows.push(window);
  return window;
}

beforeEach(() => {
  disk.folder = join(mkdtempSync(join(tmpdir(), "tracks-")), "review");
});

afterEach(async () => {
  for (const each of windows) await each.close();
  windows = [];
  workspace.textDocuments.splice(0);
  rmSync(join(disk.folder, ".."), { recursive: true });
});

/** A window in which a prompt that still runs made 3 and 6 of a document other than they were. */
async function edited(): Promise<{ window: Window; document: Document }> {
  const window = opened();
  const document = new Document(URI, BEFORE);
  window.begins("p");
  await window.edits("p", document, BEFORE.replace("3", "THREE").replace("6", "SIX"));
  return { window, document };
}

test("only what the agent did is offered, and what both did is told from it", async () => {
  const { window, document } = await edited();
  document.types("1\n", "one\n");
  document.types("SIX", "SIX or seven");
  expect(await window.offered(document)).toEqual([["3\n", "THREE\n", false], ["6\n", "SIX or seven\n", true]]);
  const lenses = await window.review.provideCodeLenses(document as never);
  expect(lenses.map((each) => each.command!.title)).toEqual([
    "agentd changed 2 places", "Accept file", "Revert file", "$(check) Accept", "$(discard) Revert",
    "$(check) Accept with what changed since", "$(discard) Revert with what changed since…",
  ]);
});

test("what is typed while an edit is on its way is the user's", async () => {
  const { window, document } = await edited();
  const version = document.version;
  await window.tracks.applying(
    { edit: { documentChanges: [{ textDocument: { uri: URI, version }, edits: [{ range: { start: { line: 0, character: 0 }, end: { line: 0, character: 1 } }, newText: "ONE" }] }] } } as never,
    async () => document.types("1\n", "typed\n"), // VS Code does not make an edit of an older text
  );
  expect(await window.offered(document)).toEqual([["3\n", "THREE\n", false], ["6\n", "SIX\n", false]]);
});

test("an accepted place stays accepted in the next window, and hides nothing that is done there later", async () => {
  const { window, document } = await edited();
  window.ends("p");
  await window.accepts(document, 0);
  await window.close();
  document.close();
  const next = opened();
  next.prompts.set("p", window.prompts.get("p")!);
  const again = new Document(URI, document.getText());
  expect(await next.offered(again)).toEqual([["6\n", "SIX\n", false]]);
  next.begins("q");
  await next.edits("q", again, again.getText().replace("THREE", "third"));
  expect(await next.offered(again)).toEqual([["THREE\n", "third\n", false], ["6\n", "SIX\n", false]]);
});

test("what the user wrote is the user's in the next window, too, whoever saved it when", async () => {
  const { window, document } = await edited();
  window.ends("p");
  document.types("1\n", "one\n");
  await window.offered(document);
  await window.close();
  document.close();
  const again = new Document(URI, document.getText().replace("5", "five").replace("SIX", "mine"));
  const next = opened();
  next.prompts.set("p", window.prompts.get("p")!);
  expect(await next.offered(again)).toEqual([["3\n", "THREE\n", false], ["6\n", "mine\n", true]]);
});

test("what two windows on the workspace accept is accepted in both, and in the next one the file is decided", async () => {
  const { window, document } = await edited();
  window.ends("p");
  await window.accepts(document, 0);
  await Promise.all([window.store.keep(), window.changes.keep()]);
  const other = opened();
  other.prompts.set("p", window.prompts.get("p")!);
  const same = new Document(URI, document.getText());
  expect(await other.offered(same)).toEqual([["6\n", "SIX\n", false]]);
  document.types("1\n", "one\n");
  expect(await window.offered(document)).toEqual([["6\n", "SIX\n", false]]);
  await other.accepts(same, 0);
  expect(other.states()).toEqual(["accepted"]);
  await Promise.all([other.store.keep(), other.changes.keep()]);
  await Promise.all([window.store.keep(), window.changes.keep(), window.store.look(), window.changes.look()]);
  expect(window.states()).toEqual(["accepted"]);
  expect(await window.offered(document)).toBeUndefined();
});

test("what others wrote to a closed file in the midst of a run is not offered as the agent's", async () => {
  const window = opened();
  const texts = [BEFORE, BEFORE.replace("2", "TWO"), BEFORE.replace("2", "TWO").replace("4", "mine"), BEFORE.replace("2", "TWO").replace("4", "mine").replace("7", "SEVEN")];
  window.prompts.set("p", [BEFORE, texts[3]!]);
  window.through.set("p", texts);
  window.begins("p");
  window.toolEnds("p", texts[0]!, texts[1]!);
  window.toolEnds("p", texts[2]!, texts[3]!);
  window.ends("p");
  const document = new Document(URI, texts[3]!);
  expect(await window.offered(document)).toEqual([["2\n", "TWO\n", false], ["7\n", "SEVEN\n", false]]);
});

test("nor in a file that is under review already", async () => {
  const { window, document } = await edited();
  window.ends("p");
  await window.offered(document);
  document.close();
  const now = document.getText();
  const texts = [now, now.replace("1", "ONE"), now.replace("1", "ONE").replace("4", "mine"), now.replace("1", "ONE").replace("4", "mine").replace("7", "SEVEN")];
  window.prompts.set("q", [now, texts[3]!]);
  window.through.set("q", texts);
  window.begins("q");
  window.toolEnds("q", texts[0]!, texts[1]!);
  window.toolEnds("q", texts[2]!, texts[3]!);
  await window.hasEnded("q");
  expect(await window.offered(new Document(URI, texts[3]!))).toEqual([
    ["1\n", "ONE\n", false], ["3\n", "THREE\n", false], ["6\n7\n", "SIX\nSEVEN\n", false],
  ]);
});

test("what is kept is for the user's eyes alone, and a file that is no good is left out", async () => {
  const { window, document } = await edited();
  window.ends("p");
  await window.offered(document);
  await window.close();
  const [name] = readdirSync(disk.folder);
  expect(statSync(join(disk.folder, name!)).mode & 0o777).toBe(0o600);
  writeFileSync(join(disk.folder, name!), "{ half");
  const next = opened();
  next.prompts.set("p", window.prompts.get("p")!);
  expect(await next.offered(document)).toEqual([["3\n", "THREE\n", false], ["6\n", "SIX\n", false]]);
  expect(next.log.join()).toContain("is left out");
});

test("of a file that was not open it is known by what the daemon keeps, prompt by prompt", async () => {
  const window = opened();
  const typed = "one\n2\nTHREE\n4\n5\n6\n7\n";
  window.prompts.set("p", [BEFORE, BEFORE.replace("3", "THREE")]);
  window.prompts.set("q", [typed, typed.replace("6", "SIX")]);
  for (const each of ["p", "q"]) {
    window.begins(each);
    window.ends(each);
  }
  const document = new Document(URI, typed.replace("6", "SIX").replace("7", "seven"));
  expect(await window.offered(document)).toEqual([["3\n", "THREE\n", false], ["6\n", "SIX\n", false]]);
});

test("where it cannot be known all counts as the agent's, and that is said", async () => {
  const window = opened();
  window.daemon.known.set("agentd/session/diff", () => ({ patch: "too long", files: [{ uri: URI, action: "changed", additions: 1, deletions: 1 }] }));
  window.prompts.set("p", [BEFORE, null]);
  window.begins("p");
  window.ends("p");
  const document = new Document(URI, BEFORE.replace("3", "THREE").replace("6", "mine, or not"));
  expect((await window.offered(document))?.length).toBe(2);
  const [first] = await window.review.provideCodeLenses(document as never);
  expect(first!.command!.title).toBe("agentd, or you since, changed 2 places");
});

test("a file of which nobody knows what it was is not offered as one that was empty", async () => {
  const window = opened();
  window.begins("p");
  window.ends("p");
  window.daemon.known.set("agentd/session/original", () => Promise.reject(new Error("sessionNotFound")));
  expect(await window.review.provideCodeLenses(new Document(URI, "all\nthat\nI have\n") as never)).toEqual([]);
  expect(window.log.at(-1)).toBe("What file:///w/a.txt was before the prompt is not known: sessionNotFound");
});

test("what is typed while the texts are fetched is the user's", async () => {
  const window = opened();
  const after = BEFORE.replace("3", "THREE");
  window.prompts.set("p", [BEFORE, after]);
  window.begins("p");
  window.ends("p");
  const document = new Document(URI, after);
  window.daemon.known.set("agentd/session/original", async () => {
    document.types("1\n", "one\n");
    return { text: BEFORE };
  });
  expect(await window.offered(document)).toEqual([["3\n", "THREE\n", false]]);
});

test("what a command writes under an open document while a prompt runs is the agent's, else it is not", async () => {
  const { window, document } = await edited();
  document.isRead(document.getText().replace("1", "by the command"));
  expect((await window.offered(document))?.[0]).toEqual(["1\n", "by the command\n", false]);
  window.prompts.set("p", [BEFORE, document.getText()]);
  window.ends("p");
  await vi.waitFor(async () => expect((await window.offered(document))?.length).toBe(3));
  document.isRead(document.getText().replace("5", "by git"));
  expect((await window.offered(document))?.length).toBe(3);
});

test("what a command wrote at last is the agent's, though the editor reads it when the run is over", async () => {
  const { window, document } = await edited();
  await document.save();
  const after = document.getText().replace("1", "by the command");
  window.prompts.set("p", [BEFORE, after]);
  window.ends("p");
  await vi.waitFor(async () => expect((await window.tracks.of(document as never))?.base).toBe(BEFORE));
  document.isRead(after);
  expect((await window.offered(document))?.map(([, now]) => now)).toEqual(["by the command\n", "THREE\n", "SIX\n"]);
});

test("an edit of the file on disk goes on with what was accepted", async () => {
  const { window, document } = await edited();
  await window.accepts(document, 0);
  document.close();
  const now = document.getText();
  window.toolEnds("p", now, now.replace("1", "ONE"));
  window.prompts.set("p", [BEFORE, now.replace("1", "ONE")]);
  window.ends("p");
  const again = new Document(URI, now.replace("1", "ONE"));
  await vi.waitFor(async () => expect(await window.offered(again)).toEqual([["1\n", "ONE\n", false], ["6\n", "SIX\n", false]]));
});

test("the file leaves the list with its last place, comes back with an undo, and leaves it again with a redo", async () => {
  const { window, document } = await edited();
  window.ends("p");
  const after = document.getText();
  const seen: string[][] = [];
  window.changes.onDidChange(() => seen.push(window.states()));
  document.types("THREE", "3");
  document.types("SIX", "6");
  await vi.waitFor(() => expect(window.states()).toEqual(["reverted"]));
  expect(await window.offered(document)).toBeUndefined();
  document.undoes(after);
  await vi.waitFor(() => expect(window.states()).toEqual(["open"]));
  expect(await window.offered(document)).toEqual([["3\n", "THREE\n", false], ["6\n", "SIX\n", false]]);
  document.undoes(BEFORE);
  await vi.waitFor(() => expect(window.states()).toEqual(["reverted"]));
});

test("a file that was reverted as a whole comes back with an undo in the editor", async () => {
  const { window, document } = await edited();
  window.ends("p");
  const after = document.getText();
  await window.applies(document, BEFORE);
  window.tell(undefined, { type: "session_rewound", promptId: "p", scope: "files", removedMessageIds: [], files: [{ uri: URI, action: "changed" }] });
  expect(window.states()).toEqual(["reverted"]);
  document.undoes(after);
  await vi.waitFor(() => expect(window.states()).toEqual(["open"]));
  expect((await window.offered(document))?.length).toBe(2);
});

test("an accepted file does not come back, whatever is undone", async () => {
  const { window, document } = await edited();
  window.ends("p");
  await window.offered(document);
  window.changes.accept({ sessionId: "s", promptId: "p", uri: URI });
  document.undoes(BEFORE);
  document.undoes(BEFORE.replace("3", "THREE"));
  await new Promise((done) => setTimeout(done, 250)); // as long as a look would take, twice
  expect(window.states()).toEqual(["accepted"]);
});

/** A document of which the session `other` has changed a line, too, while both run. */
async function editedByTwo(): Promise<{ window: Window; document: Document }> {
  const { window, document } = await edited();
  window.tell("o", { type: "agent_start" }, "other");
  await window.edits("o", document, document.getText().replace("1", "ONE"), "other");
  return { window, document };
}

test("two sessions' edits of one file are both offered, whatever is heard of which of them, and an accepted place stays so", async () => {
  const { window, document } = await editedByTwo();
  expect((await window.offered(document))?.map(([, now]) => now)).toEqual(["ONE\n", "THREE\n", "SIX\n"]);
  await window.accepts(document, 1);
  for (const [sessionId, promptId] of [["s", "p"], ["other", "o"], ["s", "p"]] as const) {
    window.tell(promptId, { type: "turn_end" }, sessionId);
    expect((await window.offered(document))?.map(([, now]) => now)).toEqual(["ONE\n", "SIX\n"]);
  }
  await window.edits("p", document, document.getText().replace("5", "FIVE"));
  expect((await window.offered(document))?.map(([, now]) => now)).toEqual(["ONE\n", "FIVE\nSIX\n"]);
});

test("of two sessions the one that ends first does not take the other one's edit for the user's", async () => {
  const { window, document } = await editedByTwo();
  await window.hasEnded("p");
  expect(await window.offered(document)).toEqual([["1\n", "ONE\n", false], ["3\n", "THREE\n", false], ["6\n", "SIX\n", false]]);
});

test("with its last place a file is decided for both sessions that changed it", async () => {
  const { window, document } = await editedByTwo();
  for (let places = 3; places > 0; places--) await window.accepts(document, 0);
  expect(await window.offered(document)).toBeUndefined();
  expect([window.states(), window.states("other")]).toEqual([["accepted"], ["accepted"]]);
});

test("a file that the user moves takes what is offered in it along, under the name that the daemon knows", async () => {
  const { window, document } = await edited();
  await window.accepts(document, 0);
  document.close();
  renamed("file:///w/a.txt", "file:///w/sub/b.txt");
  const there = new Document("file:///w/sub/b.txt", document.getText());
  expect(await window.offered(there)).toEqual([["6\n", "SIX\n", false]]);
  expect((await window.tracks.of(there as never))?.uri).toBe(URI);
  expect(window.changes.of("s").map(({ path, uri }) => [path, uri])).toEqual([["sub/b.txt", URI]]);
  expect(window.changes.placeNow(URI)).toBe("file:///w/sub/b.txt");
  renamed("file:///w/sub", "file:///w/other");
  there.close();
  expect(await window.offered(new Document("file:///w/other/b.txt", there.getText()))).toEqual([["6\n", "SIX\n", false]]);
});

test("an edit whose answer never came is the agent's all the same", async () => {
  const { window, document } = await edited();
  const range = { start: { line: 0, character: 0 }, end: { line: 0, character: 1 } };
  const edit = { documentChanges: [{ textDocument: { uri: URI, version: document.version }, edits: [{ range, newText: "ONE" }] }] };
  await expect(window.tracks.applying({ edit } as never, async () => {
    document.becomes(document.getText().replace("1", "ONE"), true);
    throw new Error("the daemon is gone");
  })).rejects.toThrow("is gone");
  window.tracks.reset();
  expect((await window.offered(document))?.map(([, now]) => now)).toEqual(["ONE\n", "THREE\n", "SIX\n"]);
});

test("line ends are no change, whichever a text has", async () => {
  const window = opened();
  window.prompts.set("p", ["1\r\n2\r\n3\r\n", "1\r\nTWO\r\n3\r\n"]);
  window.begins("p");
  window.ends("p");
  expect(await window.offered(new Document(URI, "1\r\nTWO\r\n3\r\n"))).toEqual([["2\n", "TWO\r\n", false]]);
});

test("what the user made of the agent's line stays shared when a later prompt has changed the file on disk", async () => {
  const { window, document } = await edited();
  await window.hasEnded("p");
  document.types("THREE", "mine");
  await window.offered(document);
  document.close();
  const before = document.getText();
  const after = before.replace("7", "7\nEIGHT");
  window.prompts.set("q", [before, after]);
  window.begins("q");
  window.toolEnds("q", before, after);
  await window.hasEnded("q");
  expect(await window.offered(new Document(URI, after))).toEqual([["3\n", "mine\n", true], ["6\n", "SIX\n", false], ["", "EIGHT\n", false]]);
});

test("what is changed on disk before a later prompt changes the file there is not the agent's", async () => {
  const { window, document } = await edited();
  await window.hasEnded("p");
  await window.offered(document);
  document.close();
  const before = document.getText().replace("1", "by git");
  const after = before.replace("7", "7\nEIGHT");
  window.prompts.set("q", [before, after]);
  window.begins("q");
  window.toolEnds("q", before, after);
  await window.hasEnded("q");
  expect(await window.offered(new Document(URI, after))).toEqual([["3\n", "THREE\n", false], ["6\n", "SIX\n", false], ["", "EIGHT\n", false]]);
});

test("what is accepted while the prompt that changed the file on disk still runs stays accepted", async () => {
  const { window, document } = await edited();
  await window.hasEnded("p");
  await window.offered(document);
  document.close();
  const before = document.getText();
  const after = before.replace("1", "ONE");
  window.prompts.set("q", [before, after]);
  window.begins("q");
  window.toolEnds("q", before, after);
  const again = new Document(URI, after);
  await window.accepts(again, 0);
  await window.hasEnded("q");
  expect(await window.offered(again)).toEqual([["3\n", "THREE\n", false], ["6\n", "SIX\n", false]]);
});

test("what a prompt did that came to nothing says nothing of the next one", async () => {
  const { window, document } = await edited();
  await window.hasEnded("p");
  const before = document.getText();
  window.begins("q");
  await window.edits("q", document, before.replace("1", "ONE"));
  await window.edits("q", document, before);
  window.tell("q", { type: "agent_end" });
  document.types("5\n", "five\n");
  await window.offered(document);
  document.close();
  const typed = document.getText();
  const after = typed.replace("7", "7\nEIGHT");
  window.prompts.set("r", [typed, after]);
  window.begins("r");
  window.toolEnds("r", typed, after);
  await window.hasEnded("r");
  expect(await window.offered(new Document(URI, after))).toEqual([["3\n", "THREE\n", false], ["6\n", "SIX\n", false], ["", "EIGHT\n", false]]);
});

test("what the user writes where the agent's change was taken back is not the agent's, until an undo brings that back", async () => {
  const { window, document } = await edited();
  window.ends("p");
  const after = document.getText();
  document.types("THREE", "3");
  document.types("SIX", "6");
  await vi.waitFor(() => expect(window.states()).toEqual(["reverted"]));
  document.types("3", "mine");
  await new Promise((done) => setTimeout(done, 250)); // as long as a look would take, twice
  expect(window.states()).toEqual(["reverted"]);
  expect(await window.offered(document)).toBeUndefined();
  document.undoes(after);
  await vi.waitFor(() => expect(window.states()).toEqual(["open"]));
});

test("a file is accepted with what all prompts did to it", async () => {
  const { window, document } = await edited();
  await window.hasEnded("p");
  window.begins("q");
  await window.edits("q", document, document.getText().replace("1", "ONE"));
  await window.hasEnded("q");
  await window.accepts(document, 0);
  expect((await window.offered(document))?.length).toBe(2);
  window.changes.accept({ sessionId: "s", promptId: "p", uri: URI });
  expect(window.states()).toEqual(["accepted", "accepted"]);
  expect(await window.offered(document)).toBeUndefined();
});

test("a file is accepted for both sessions that changed it, where both are offered", async () => {
  const { window, document } = await editedByTwo();
  window.tracks.acceptFile((await window.tracks.of(document as never))!);
  expect([window.states(), window.states("other")]).toEqual([["accepted"], ["accepted"]]);
});

test("an edit in the editor stays offered where a command wrote the file on disk under it", async () => {
  const { window, document } = await edited();
  window.prompts.set("p", [BEFORE, BEFORE.replace("1", "by the command")]);
  await window.hasEnded("p");
  expect(await window.offered(document)).toEqual([["3\n", "THREE\n", false], ["6\n", "SIX\n", false]]);
  await new Promise((done) => setTimeout(done, 250)); // as long as a look would take, twice
  expect(window.states()).toEqual(["open"]);
});

test("a file whose last place is accepted while its prompt ends leaves the list", async () => {
  const { window, document } = await edited();
  await window.hasEnded("p");
  await window.accepts(document, 0);
  document.close();
  window.begins("q");
  window.toolEnds("q", document.getText(), document.getText());
  const again = new Document(URI, document.getText());
  window.prompts.set("q", [document.getText(), document.getText()]);
  window.ends("q");
  await window.accepts(again, 0);
  await vi.waitFor(() => expect(window.states()).toEqual(["accepted", "accepted"]));
});

test("of a file that is too large to be looked through nothing is kept, nor asked", async () => {
  const { window, document } = await edited();
  await window.hasEnded("p");
  const large = "x".repeat(2_000_001);
  document.close();
  window.begins("q");
  window.toolEnds("q", document.getText(), `${document.getText()}${large}\n`);
  expect(window.store.all()).toEqual([]);
  window.daemon.known.set("agentd/session/diff", () => Promise.reject(new Error("asked")));
  expect(await window.tracks.of(new Document(URI, large) as never)).toBeUndefined();
  expect(window.store.all()).toEqual([]);
});

test("a file that was too large before a prompt is not looked through either", async () => {
  const window = opened();
  window.prompts.set("p", ["x".repeat(2_000_001), "small\n"]);
  window.begins("p");
  await window.hasEnded("p");
  expect(await window.offered(new Document(URI, "small\n"))).toBeUndefined();
  expect(window.store.all()).toEqual([]);
});

test("what is decided is gone from the disk with the next window, and so is what was never written whole", async () => {
  const { window, document } = await edited();
  window.ends("p");
  for (const _ of ["THREE", "SIX"]) await window.accepts(document, 0);
  await window.close();
  const [name] = readdirSync(disk.folder);
  const [old, fresh] = [join(disk.folder, `${name}.1`), `${name}.2`];
  for (const part of [old, join(disk.folder, fresh)]) writeFileSync(part, "{ half");
  utimesSync(old, 1, 1);
  const next = opened();
  await next.store.loaded;
  expect(next.store.all()).toEqual([]);
  expect(readdirSync(disk.folder)).toEqual([fresh]); // another window may be about to write it
});
