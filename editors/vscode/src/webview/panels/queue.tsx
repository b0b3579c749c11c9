import { useMemo, useRef, useState } from "preact/hooks";
import type { QueuedPrompt } from "../../shared/wire";
import { fromBlocks, labelOf, toBlocks } from "../composer/blocks";
import { part, useStore } from "../model/store";
import { Icon } from "../ui/icon";
import { MenuButton, type MenuItem } from "../ui/menu";
import { Section } from "./section";

const NONE: readonly QueuedPrompt[] = [];

/** What waits for its turn, in its order: to be changed, moved, taken out or run. */
export function QueuePanel() {
  const store = useStore();
  const queue = useMemo(() => part(store, (view) => view.queue, NONE), [store]).value;
  const idle = useMemo(() => part(store, (view) => view.state === "idle" && view.compacting === null, false), [store]).value;
  const [editing, setEditing] = useState<string | null>(null);
  const [dragged, setDragged] = useState<string | null>(null);
  const list = useRef<HTMLOListElement>(null);
  const sessionId = store.session.value?.session.sessionId;
  if (queue.length === 0 || sessionId === undefined) return null;
  const change = (params: Omit<Parameters<typeof store.attempt<"queue">>[1], "sessionId">) => store.attempt("queue", { sessionId, ...params });

  async function move(promptId: string, index: number) {
    if (index < 0 || index >= queue.length) return;
    await change({ op: "move", promptId, index });
    // The line is another one now; the focus stays with the prompt.
    requestAnimationFrame(() => list.current?.querySelector<HTMLElement>(`[data-id="${CSS.escape(promptId)}"] .queue-words`)?.focus());
  }

  return (
    <Section name="Queue" title="Queue" summary={queue.length} actions={idle && (
      <button type="button" class="button compact" title="It stands since agentd was stopped" onClick={() => void change({ op: "run" })}><Icon name="play" /> Run all</button>
    )}>
      <ol ref={list} class="plain-list queue">
        {queue.map((one, index) => (
          <li
            key={one.promptId} data-id={one.promptId} class={`queue-line${dragged === one.promptId ? " dragged" : ""}`} draggable={editing !== one.promptId}
            onDragStart={(event) => {
              event.dataTransfer?.setData("application/x-agentd-queued", one.promptId);
              setDragged(one.promptId);
            }}
            onDragEnd={() => setDragged(null)}
            onDragOver={(event) => dragged !== null && event.preventDefault()}
            onDrop={(event) => {
              event.preventDefault();
              if (dragged !== null && dragged !== one.promptId) void move(dragged, index);
              setDragged(null);
            }}
          >
            {editing === one.promptId
              ? <Edit queued={one} onDone={async (prompt) => {
                if (prompt && !(await change({ op: "edit", promptId: one.promptId, prompt }))) return;
                setEditing(null);
              }} />
              : <Line queued={one} index={index} count={queue.length} idle={idle} onEdit={() => setEditing(one.promptId)} onMove={move}
                  onRemove={() => void change({ op: "remove", promptId: one.promptId })} onRun={() => void change({ op: "run", promptId: one.promptId })} />}
          </li>
        ))}
      </ol>
    </Section>
  );
}

interface LineProps {
  queued: QueuedPrompt; index: number; count: number; idle: boolean;
  onEdit(): void; onRemove(): void; onRun(): void; onMove(promptId: string, index: number): Promise<void>;
}

function Line({ queued, index, count, idle, onEdit, onRemove, onRun, onMove }: LineProps) {
  const { promptId, kind, prompt } = queued;
  const draft = fromBlocks(prompt);
  const words = draft.text || draft.chips.map((chip) => chip.label).join(", ");
  const more = draft.text && draft.chips.length > 0 ? ` +${draft.chips.length}` : "";
  const items: MenuItem[] = [
    { label: "Edit", icon: "edit", key: "Enter", run: onEdit },
    { label: idle ? "Run now" : "Run next", icon: "play", run: onRun },
    { label: "Move up", icon: "arrow-up", key: "Alt+↑", disabled: index === 0, run: () => void onMove(promptId, index - 1) },
    { label: "Move down", icon: "arrow-down", key: "Alt+↓", disabled: index === count - 1, run: () => void onMove(promptId, index + 1) },
    { label: "Remove", icon: "trash", key: "Del", run: onRemove },
  ];
  return (
    <>
      <Icon name="gripper" class="grip" />
      <button
        type="button" class="queue-words" title={`${words}\n\nClick to edit, Alt+↑ and Alt+↓ to move, Delete to remove`} onClick={onEdit}
        onKeyDown={(event) => {
          if (event.key === "Delete") onRemove();
          else if (event.altKey && event.key === "ArrowUp") void onMove(promptId, index - 1);
          else if (event.altKey && event.key === "ArrowDown") void onMove(promptId, index + 1);
          else return;
          event.preventDefault();
        }}
      >
        <span class={`badge ${kind}`}>{kind === "steer" ? "steer" : index + 1}</span>
        <span class="ellipsis">{words}</span>
        {more && <span class="muted small">{more}</span>}
      </button>
      <span class="line-actions">
        {idle && <button type="button" class="icon-button tiny" aria-label="Run now" title="Run now" onClick={onRun}><Icon name="play" /></button>}
        <button type="button" class="icon-button tiny wide-only" aria-label={`Edit ${words.slice(0, 40)}`} title="Edit" onClick={onEdit}><Icon name="edit" /></button>
        <button type="button" class="icon-button tiny wide-only" aria-label={`Remove ${words.slice(0, 40)}`} title="Remove" onClick={onRemove}><Icon name="trash" /></button>
        <MenuButton class="icon-button tiny" label={`More for ${words.slice(0, 40)}`} align="end" items={items}><Icon name="ellipsis" /></MenuButton>
      </span>
    </>
  );
}

/** The prompt's words in place; what is attached to it stays unless it is taken off. */
function Edit({ queued, onDone }: { queued: QueuedPrompt; onDone(prompt: QueuedPrompt["prompt"] | null): Promise<void> }) {
  const [draft, setDraft] = useState(() => fromBlocks(queued.prompt));
  const prompt = toBlocks(draft);
  const save = () => void (prompt.length > 0 && onDone(JSON.stringify(prompt) === JSON.stringify(queued.prompt) ? null : prompt));
  return (
    <div class="queue-edit">
      <textarea
        ref={(element) => {
          if (element && document.activeElement === document.body) element.focus();
        }}
        aria-label="Queued prompt" rows={Math.min(8, Math.max(2, draft.text.split("\n").length))} value={draft.text}
        onInput={(event) => setDraft({ ...draft, text: event.currentTarget.value })}
        onKeyDown={(event) => {
          if (event.isComposing || event.keyCode === 229) return;
          if (event.key === "Enter" && !event.shiftKey) save();
          else if (event.key === "Escape") void onDone(null);
          else return;
          event.preventDefault();
          event.stopPropagation();
        }}
      />
      {draft.chips.length > 0 && (
        <ul class="attachments" aria-label="Attachments of the queued prompt">
          {draft.chips.map((chip) => (
            <li key={labelOf(chip.block)} class="attachment">
              <span class="attachment-label">{chip.label}</span>
              <button type="button" class="attachment-remove" aria-label={`Remove ${chip.label}`} onClick={() => setDraft({ ...draft, chips: draft.chips.filter((one) => one !== chip) })}><Icon name="close" /></button>
            </li>
          ))}
        </ul>
      )}
      <span class="queue-edit-ways">
        <button type="button" class="button compact" disabled={prompt.length === 0} onClick={save}>Save</button>
        <button type="button" class="button secondary compact" onClick={() => void onDone(null)}>Cancel</button>
      </span>
    </div>
  );
}
