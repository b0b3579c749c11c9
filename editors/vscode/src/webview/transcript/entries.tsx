/** One entry of the conversation, and a plain list of them (for sub-agents). */
import { memo } from "../memo";
import type { Entry } from "../model/view";
import { AssistantMessage } from "./assistant";
import { CompactionMark, NoticeMark, RewoundMark } from "./marks";
import { RunFooter } from "./run";
import { UserMessage } from "./user";

export const EntryRow = memo(function EntryRow({ entry, isLast, nested }: { entry: Entry; isLast: boolean; nested?: boolean }) {
  switch (entry.type) {
    case "user": return <UserMessage entry={entry} nested={nested ?? false} />;
    case "assistant": return <AssistantMessage entry={entry} nested={nested ?? false} />;
    case "run": return <RunFooter entry={entry} isLast={isLast} nested={nested ?? false} />;
    case "notice": return <NoticeMark entry={entry} />;
    case "compaction": return <CompactionMark entry={entry} />;
    case "rewound": return <RewoundMark entry={entry} isLast={isLast} />;
  }
});

export function Entries({ entries }: { entries: readonly Entry[] }) {
  return <>{entries.filter(isShown).map((entry) => <EntryRow key={entry.id} entry={entry} isLast={false} nested />)}</>;
}

/** A message that closes a run and says nothing is told by the run's end. */
export function isShown(entry: Entry): boolean {
  if (entry.type === "user") return entry.done || entry.content.length > 0;
  if (entry.type === "run") return entry.stopReason !== "stop" || entry.usage !== undefined || entry.durationMs !== undefined;
  return entry.type !== "assistant" || entry.blocks.length > 0 || (entry.promptId === undefined && entry.stopReason !== "stop");
}
