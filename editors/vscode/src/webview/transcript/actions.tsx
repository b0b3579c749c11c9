/** What can be done with a message. */
import { useShown, useStore } from "../model/store";
import type { AssistantEntry, UserEntry } from "../model/view";
import { IconButton } from "./icon";
import { wordsOf } from "./user";

export function MessageActions({ entry }: { entry: UserEntry | AssistantEntry }) {
  const store = useStore();
  const sessionId = useShown((view) => view.session.sessionId);
  const idle = useShown((view) => view.state === "idle");
  const fork = async () => {
    const shown = await store.attempt("fork", { sessionId, messageId: entry.id });
    if (shown) store.show(shown);
  };
  return (
    <div class="message-actions">
      <IconButton name="copy" label="Copy message" onClick={() => void store.attempt("copy", { text: textOf(entry) })} />
      <IconButton name="repo-forked" label="Fork from here" onClick={() => void fork()} />
      {entry.type === "user" && entry.promptId !== undefined && idle && (
        <IconButton name="discard" label="Undo from here: files and conversation" onClick={() => {
          void store.attempt("undo", { sessionId, promptId: entry.promptId! });
        }} />
      )}
    </div>
  );
}

function textOf(entry: UserEntry | AssistantEntry): string {
  const parts = entry.type === "user" ? entry.content.map(wordsOf) : entry.blocks.map((block) => (block.type === "text" ? block.text : ""));
  return parts.filter((part) => part.trim() !== "").join("\n\n");
}
