/** What happened in the conversation beside what was said. */
import { useShown, useStore } from "../model/store";
import type { CompactionEntry, NoticeEntry, RewoundEntry } from "../model/view";
import { Icon } from "./icon";
import { count, fileName, plural } from "./words";

export function NoticeMark({ entry }: { entry: NoticeEntry }) {
  return (
    <div class={`callout is-${entry.severity}`} role="note">
      <Icon name={entry.severity === "info" ? "info" : entry.severity} />
      <div class="callout-text">{entry.message}</div>
    </div>
  );
}

export function CompactionMark({ entry }: { entry: CompactionEntry }) {
  const { outcome, tokensBefore: before, tokensAfter: after, error } = entry;
  const words = outcome === "compacted" ? `Summed up for the model: ${count(before)} → ${after === undefined ? "?" : count(after)} tokens`
    : outcome === "nothingToDo" ? "There was nothing to sum up"
    : outcome === "aborted" ? "Summing up was stopped" : `Summing up failed${error ? `: ${error.message}` : ""}`;
  return <div class="mark" role="note"><Icon name="fold" /><span>{words}</span></div>;
}

export function RewoundMark({ entry, isLast }: { entry: RewoundEntry; isLast: boolean }) {
  const store = useStore();
  const sessionId = useShown((view) => view.session.sessionId);
  const conflicts = entry.files.filter((file) => file.conflict !== undefined);
  const parts = [
    entry.messages > 0 ? plural(entry.messages, "message") : "",
    entry.files.length > conflicts.length ? plural(entry.files.length - conflicts.length, "file") : "",
  ].filter(Boolean).join(" and ");
  return (
    <div class="rewound" role="note">
      <div class="mark">
        <Icon name={entry.undo ? "redo" : "discard"} />
        <span>{entry.undo ? "Brought back" : "Undone"}{parts ? `: ${parts}` : ""}</span>
        {isLast && (
          <button type="button" class="link" onClick={() => void store.attempt("undo", { sessionId, redo: true })}>
            {entry.undo ? "Undo again" : "Bring back"}
          </button>
        )}
      </div>
      {conflicts.map((file) => <div key={file.uri} class="callout is-warning"><Icon name="warning" /><div class="callout-text">{fileName(file.uri)}: {file.conflict}</div></div>)}
    </div>
  );
}
