/** What a message of the conversation becomes, event by event. */
import type { AssistantMessage, MessageDelta, MessageHead, ToolResultMessage, UserMessage } from "../../shared/wire";
import { grow } from "./growing";
import { called, newTool } from "./tools";
import type { AssistantEntry, Block, Entry, Tool, UserEntry } from "./view";

export function userEntry(message: UserMessage, promptId: string | undefined): UserEntry {
  return { type: "user", id: message.messageId, promptId, content: message.content, time: message.timestamp, done: true };
}

export function opened(head: MessageHead, promptId: string | undefined, time: string): Entry | null {
  if (head.role === "user") return { type: "user", id: head.messageId, promptId, content: [], time, done: false };
  if (head.role !== "assistant") return null;
  return {
    type: "assistant", id: head.messageId, promptId, model: head.model ?? "", provider: undefined, blocks: [], done: false,
    stopReason: undefined, errorMessage: undefined, time,
  };
}

/** The whole message; of its calls, what is known already stays. */
export function whole(message: AssistantMessage, promptId: string | undefined, open: AssistantEntry | undefined): AssistantEntry {
  const known = new Map(tools(open).map((tool) => [tool.id, tool]));
  return {
    type: "assistant", id: message.messageId, promptId: promptId ?? open?.promptId, model: message.model, provider: message.provider,
    blocks: message.content.map((block) => settled(block, known)),
    done: true, stopReason: message.stopReason, errorMessage: message.errorMessage, time: message.timestamp,
  };
}

function settled(block: AssistantMessage["content"][number], known: ReadonlyMap<string, Tool>): Block {
  switch (block.type) {
    case "text": return { type: "text", text: block.text, length: block.text.length };
    case "thinking": return { type: "thinking", text: block.text, length: block.text.length, redacted: block.redacted ?? false };
    case "tool_call": return { type: "tool", tool: called(block, known.get(block.id)) };
  }
}

export function grown(entry: AssistantEntry, update: MessageDelta): AssistantEntry {
  if (entry.done) return entry;
  const before = entry.blocks[update.index];
  const after = grownBlock(fitting(before, update, entry.id), update);
  if (after === before) return entry;
  const blocks = entry.blocks.slice();
  // Updates of the blocks between were missed; `message_end` tells them.
  while (blocks.length < update.index) blocks.push({ type: "text", text: "", length: 0 });
  blocks[update.index] = after;
  return { ...entry, blocks };
}

/** The block that the update is of: one of another kind can only be a stand-in for what was missed. */
function fitting(block: Block | undefined, update: MessageDelta, messageId: string): Block {
  if (update.kind === "tool_call") {
    if (block?.type === "tool") return block;
    return { type: "tool", tool: newTool(update.toolCallId ?? `${messageId}/${update.index}`, update.toolName ?? "") };
  }
  if (block?.type === update.kind) return block;
  return update.kind === "text" ? { type: "text", text: "", length: 0 } : { type: "thinking", text: "", length: 0, redacted: false };
}

function grownBlock(block: Block, update: MessageDelta): Block {
  if (block.type === "tool") {
    const { tool } = block;
    const { added, length } = grow(tool.rawLength, update.offset, update.delta);
    const id = update.toolCallId ?? tool.id;
    const named = update.toolName && update.toolName !== tool.name ? { name: update.toolName, kind: newTool("", update.toolName).kind } : {};
    if (added === "" && id === tool.id && !("name" in named)) return block;
    return { type: "tool", tool: { ...tool, ...named, id, rawArguments: tool.rawArguments + added, rawLength: length } };
  }
  const { added, missed, length } = grow(block.length, update.offset, update.delta);
  if (added === "") return block;
  return { ...block, text: block.text + (missed > 0 ? "…" : "") + added, length };
}

export function tools(entry: Entry | undefined): Tool[] {
  return entry?.type === "assistant" ? entry.blocks.flatMap((block) => (block.type === "tool" ? [block.tool] : [])) : [];
}

/** The entries with the tool call `id` changed, newest first looked at; undefined where it is not there. */
export function withTool(entries: readonly Entry[], id: string, change: (tool: Tool) => Tool): readonly Entry[] | undefined {
  for (let at = entries.length - 1; at >= 0; at--) {
    const entry = entries[at]!;
    if (entry.type !== "assistant") continue;
    const index = entry.blocks.findIndex((block) => block.type === "tool" && block.tool.id === id);
    if (index < 0) continue;
    const block = entry.blocks[index]!;
    if (block.type !== "tool") continue;
    const tool = change(block.tool);
    if (tool === block.tool) return entries;
    return entries.with(at, { ...entry, blocks: entry.blocks.with(index, { type: "tool", tool }) });
  }
  return undefined;
}

/** The result of a call, filed with it; undefined where the call is not there. */
export function withResult(
  entries: readonly Entry[], result: ToolResultMessage, file: (tool: Tool, result: ToolResultMessage) => Tool,
): readonly Entry[] | undefined {
  return withTool(entries, result.toolCallId, (tool) => (tool.resultId === result.messageId ? tool : file(tool, result)));
}
