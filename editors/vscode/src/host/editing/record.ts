/** Which files prompts changed and what the user said of them: a fold of events, kept with the workspace. */
import type { Change } from "../../shared/messages";
import type { EventNotification, FileChange, RewoundFile, SessionDiffResult } from "../../shared/wire";
import { keyOf } from "./uris";

/** What is kept of one session. `prompts` in the order in which they ran; `seq` is of the last event in it, all before are. */
export interface SessionRecord {
  sessionId: string;
  seq?: number;
  prompts: string[];
  /** `movedTo`: what the user calls the file now; the daemon goes on calling it `uri`. */
  changes: (Omit<Change, "path" | "sessionId"> & { movedTo?: string })[];
}

export function emptyRecord(sessionId: string): SessionRecord {
  return { sessionId, prompts: [], changes: [] };
}

type Kept = SessionRecord["changes"][number];

/** The address of a changed file as VS Code writes it. */
export function placeOf(change: Kept): string {
  return keyOf(change.movedTo ?? change.uri);
}

/** The record once the user has moved a file, or a folder with files. */
export function moved(record: SessionRecord, from: string, to: string): SessionRecord {
  const isIn = (each: Kept) => placeOf(each) === from || placeOf(each).startsWith(`${from}/`);
  if (!record.changes.some(isIn)) return record;
  return { ...record, changes: record.changes.map((each) => (isIn(each) ? { ...each, movedTo: to + placeOf(each).slice(from.length) } : each)) };
}

function withPrompt(record: SessionRecord, promptId: string): SessionRecord {
  return record.prompts.includes(promptId) ? record : { ...record, prompts: [...record.prompts, promptId] };
}

function withChange(record: SessionRecord, promptId: string, uri: string, change: (before: Kept | undefined) => Kept): SessionRecord {
  const at = record.changes.findIndex((each) => each.promptId === promptId && each.uri === uri);
  const made = change(record.changes[at]);
  const changes = at < 0 ? [...record.changes, made] : record.changes.with(at, made);
  return { ...withPrompt(record, promptId), changes };
}

/** An edit of a tool shows while the prompt still runs; several of one file add up. */
function edited(record: SessionRecord, promptId: string, file: FileChange): SessionRecord {
  return withChange(record, promptId, file.uri, (before) => ({
    promptId,
    uri: file.uri,
    action: before?.action === "created" && file.action === "changed" ? "created" : file.action,
    additions: (before?.additions ?? 0) + file.additions,
    deletions: (before?.deletions ?? 0) + file.deletions,
    state: "open",
  }));
}

/** Of the files that a rewind restored, what this prompt and those behind it did is reverted; an undo opens it again. */
function rewound(record: SessionRecord, promptId: string, files: RewoundFile[], undo: boolean): SessionRecord {
  const restored = new Set(files.filter((each) => !each.conflict).map((each) => each.uri));
  const from = record.prompts.indexOf(promptId);
  const isBehind = (each: Kept) => record.prompts.indexOf(each.promptId) >= from;
  return {
    ...record,
    changes: record.changes.map((each) => {
      if (!restored.has(each.uri) || !isBehind(each)) return each;
      if (undo) return each.state === "reverted" ? { ...each, state: "open" as const } : each;
      return { ...each, state: "reverted" as const };
    }),
  };
}

/** The record after an event. The same object where the event says nothing of files. */
export function after(record: SessionRecord, notification: EventNotification): SessionRecord {
  const { event, promptId } = notification;
  if (event.type === "session_rewound") {
    return event.scope === "conversation" ? record : rewound(record, event.promptId, event.files, event.undo === true);
  }
  if (!promptId) return record;
  switch (event.type) {
    case "agent_start":
      return withPrompt(record, promptId);
    case "tool_execution_end": {
      const details = event.result.details;
      if (details?.type !== "edit" || event.result.isError) return record;
      return details.files.reduce((all, file) => edited(all, promptId, file), record);
    }
    case "files_changed":
      return event.files.reduce((all, file) => withChange(all, promptId, file.uri, (before) => ({
        additions: 0, deletions: 0, state: "open", ...before, promptId, uri: file.uri, action: file.action,
      })), record);
    default:
      return record;
  }
}

/** What a prompt came to in the end, in the daemon's count: files that are as before it are no change. */
export function counted(record: SessionRecord, promptId: string, diff: SessionDiffResult): SessionRecord {
  const files = new Map(diff.files.map((each) => [each.uri, each]));
  const changes = record.changes
    .filter((each) => each.promptId !== promptId || each.state !== "open" || files.has(each.uri))
    .map((each) => {
      const file = each.promptId === promptId ? files.get(each.uri) : undefined;
      return file ? { ...each, action: file.action, additions: file.additions, deletions: file.deletions } : each;
    });
  return { ...record, changes };
}

/** The record with the user's word on a file of a prompt, or on all of its open ones. */
export function said(record: SessionRecord, promptId: string, uri: string | undefined, state: Change["state"]): SessionRecord {
  return {
    ...record,
    changes: record.changes.map((each) =>
      each.promptId === promptId && (uri === undefined ? each.state === "open" : each.uri === uri) ? { ...each, state } : each),
  };
}

/** The record with the number of an event that is in it: where it is the next one, or `isAll` says that none is missing. */
export function withSeq(record: SessionRecord, seq: number | undefined, isAll = false): SessionRecord {
  if (seq === undefined || (!isAll && seq !== (record.seq ?? 0) + 1)) return record;
  return { ...record, seq };
}

/** The record once a file's open changes are decided all together. `uri` as `placeOf` gives it, here and below. */
export function settled(record: SessionRecord, uri: string, state: "accepted" | "reverted"): SessionRecord {
  if (!firstOpen(record, uri)) return record;
  return {
    ...record,
    changes: record.changes.map((each) => (placeOf(each) === uri && each.state === "open" ? { ...each, state } : each)),
  };
}

/** The record once a file's changes of a prompt and those behind it are to be decided again. */
export function reopened(record: SessionRecord, promptId: string, uri: string): SessionRecord {
  const from = record.prompts.indexOf(promptId);
  const isAgain = (each: Kept) => placeOf(each) === uri && record.prompts.indexOf(each.promptId) >= from;
  return { ...record, changes: record.changes.map((each) => (isAgain(each) ? { ...each, state: "open" as const } : each)) };
}

/** The prompts whose changes of a file are open, from one on, in the order in which they ran. */
export function openPrompts(record: SessionRecord, promptId: string, uri: string): string[] {
  const open = new Set(record.changes.filter((each) => each.state === "open" && placeOf(each) === uri).map((each) => each.promptId));
  return record.prompts.slice(Math.max(record.prompts.indexOf(promptId), 0)).filter((each) => open.has(each));
}

/** The first prompt whose change of a file is open: what was before it is what the user compares with. */
export function firstOpen(record: SessionRecord, uri: string): Kept | undefined {
  return record.changes
    .filter((each) => each.state === "open" && placeOf(each) === uri)
    .sort((one, other) => record.prompts.indexOf(one.promptId) - record.prompts.indexOf(other.promptId))[0];
}

/** A record with what the user said of its changes in another one of the same session. */
export function withWords(record: SessionRecord, other: SessionRecord | undefined): SessionRecord {
  const words = (other?.changes ?? []).filter((each) => each.state !== "open");
  return words.reduce((all, { promptId, uri, state }) => said(all, promptId, uri, state), record);
}

/**
 * What two windows know, put together: by session, what one of them has changed since `before`, which both knew.
 * The latest stand last.
 *
 * @param isFull the other one may have left sessions out, for which it had no room; else it has forgotten them
 */
export function mergedRecords(before: SessionRecord[], mine: SessionRecord[], theirs: SessionRecord[], isFull = false): SessionRecord[] {
  const of = (records: SessionRecord[]) => new Map(records.map((each) => [each.sessionId, each]));
  const [old, here, there] = [of(before), of(mine), of(theirs)];
  // What is gone here was taken out, and so was what is gone there, unless more has happened to it here.
  const news = theirs.filter(({ sessionId }) => !here.has(sessionId) && !old.has(sessionId));
  const isForgotten = (each: SessionRecord) => !isFull && !there.has(each.sessionId) && isSame(old.get(each.sessionId), each);
  return [...news, ...mine.filter((each) => !isForgotten(each))].map((each) => {
    const [one, other] = [here.get(each.sessionId), there.get(each.sessionId)];
    return one && other ? mergedRecord(old.get(each.sessionId), one, other) : each;
  });
}

function isSame(one: SessionRecord | undefined, other: SessionRecord): boolean {
  return JSON.stringify(one) === JSON.stringify(other);
}

function mergedRecord(before: SessionRecord | undefined, mine: SessionRecord, theirs: SessionRecord): SessionRecord {
  if (isSame(before, theirs)) return mine;
  const nameOf = (each: Kept) => `${each.promptId} ${each.uri}`;
  const of = (record: SessionRecord | undefined) => new Map((record?.changes ?? []).map((each) => [nameOf(each), each]));
  const [old, here, there] = [of(before), of(mine), of(theirs)];
  const [most, other] = (theirs.seq ?? 0) > (mine.seq ?? 0) ? [theirs, mine] : [mine, theirs];
  const names = [...new Set([...most.changes, ...other.changes].map(nameOf))].filter((each) => !old.has(each) || (here.has(each) && there.has(each)));
  const changes = names.map((name) => {
    const [one, two, was] = [here.get(name), there.get(name), old.get(name)];
    const told = (most === mine ? (one ?? two) : (two ?? one)) as Kept;
    if (!one || !two) return told;
    // Who has said something since says it for both.
    const isSaid = one.state !== (was?.state ?? "open");
    return { ...told, state: isSaid ? one.state : two.state };
  });
  return { ...most, prompts: [...new Set([...most.prompts, ...other.prompts])], changes };
}
