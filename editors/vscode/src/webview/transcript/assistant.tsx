/** What the model said: thoughts, Markdown and tool calls, in the order they came. */
import { useState } from "preact/hooks";
import { useStore } from "../model/store";
import type { AssistantEntry, Block, ThinkingBlock } from "../model/view";
import { Markdown } from "../markdown/markdown";
import { useFold } from "./folds";
import { Icon } from "./icon";
import { MessageActions } from "./actions";
import { ToolCard } from "./tool";

/** Of a message with very many parts its beginning and its end are in the page: so many of each. */
const ENDS = 60;

export function AssistantMessage({ entry, nested }: { entry: AssistantEntry; nested: boolean }) {
  const last = entry.blocks.length - 1;
  const [all, setAll] = useState(false);
  const hidden = all || entry.blocks.length <= 3 * ENDS ? 0 : entry.blocks.length - 2 * ENDS;
  return (
    <article class="message assistant" data-message-id={entry.id} data-role="assistant" aria-label="agentd">
      {entry.blocks.map((block, index) => {
        if (hidden > 0 && index === ENDS) return <button key="more" type="button" class="link" onClick={() => setAll(true)}>Show {hidden} more</button>;
        if (hidden > 0 && index > ENDS && index < ENDS + hidden) return null;
        return <BlockView key={index} block={block} entry={entry} index={index} open={!entry.done && index === last} />;
      })}
      {entry.promptId === undefined && <Ending entry={entry} />}
      {!nested && entry.done && entry.blocks.some((block) => block.type === "text" && block.text.trim() !== "") && <MessageActions entry={entry} />}
    </article>
  );
}

function BlockView({ block, entry, index, open }: { block: Block; entry: AssistantEntry; index: number; open: boolean }) {
  switch (block.type) {
    case "text": return block.text === "" ? null : <Markdown text={block.text} final={!open} />;
    case "thinking": return <Thinking block={block} id={`${entry.id}/${index}`} open={open} />;
    case "tool": return <ToolCard tool={block.tool} promptId={entry.promptId} />;
  }
}

/** Folded; whether it is open while it comes is remembered from the last time. */
function Thinking({ block, id, open: streams }: { block: ThinkingBlock; id: string; open: boolean }) {
  const { memory } = useStore();
  const wishes = memory.kept("thinkingOpen", false);
  const [open, toggle] = useFold(id, streams && wishes.value);
  if (block.redacted) return <p class="thinking redacted"><Icon name="lightbulb" /> Thought, kept by the provider</p>;
  return (
    <div class={`thinking${streams ? " streams" : ""}`}>
      <button type="button" class="thinking-bar" aria-expanded={open} onClick={() => {
        if (streams) wishes.value = !open;
        toggle();
      }}>
        <Icon name={open ? "chevron-down" : "chevron-right"} />
        <span>{streams ? "Thinking" : "Thought"}</span>
      </button>
      {open && <div class="thinking-text"><Markdown text={block.text} final={!streams} /></div>}
    </div>
  );
}

/** How a message ended of whose run nothing else is known. */
function Ending({ entry }: { entry: AssistantEntry }) {
  const told: Record<string, string> = {
    aborted: "Stopped", length: "Cut off: the model's output limit was reached", refusal: "The model refused", error: "Failed",
  };
  const words = told[entry.stopReason ?? ""];
  if (!words) return null;
  return <p class={`ending ${entry.stopReason!}`}>{words}{entry.stopReason === "error" && entry.errorMessage ? `: ${entry.errorMessage}` : ""}</p>;
}
