/** What a tool call becomes, event by event. */
import type {
  PermissionRequest, ToolCall, ToolDelta, ToolDetails, ToolExecutionEnd, ToolExecutionStart, ToolKind, ToolResultMessage,
} from "../../shared/wire";
import { grow } from "./growing";
import type { Channel, OutputPart, Tool, ToolState } from "./view";

/** Of a tool that was called but not taken up, the kind is told by its name alone. */
const KINDS: Record<string, ToolKind> = {
  read_file: "read", list_directory: "read", diagnostics: "read", skill: "read", bash_output: "read", find_files: "search",
  search_files: "search", edit_file: "edit", write_file: "edit", bash: "execute", bash_kill: "execute", web_fetch: "fetch",
  task: "think", todo_write: "think", todo_read: "think", report_findings: "think",
};

export function newTool(id: string, name: string): Tool {
  return {
    id, name, state: "writing", title: undefined, kind: KINDS[name] ?? "other", arguments: undefined, rawArguments: "", rawLength: 0,
    locations: [], startedAt: undefined, durationMs: undefined, output: [], offsets: {}, result: undefined,
    resultId: undefined, isError: false, details: undefined, rejected: false,
  };
}

/** The call as its whole message tells it; what is known of it already stays. */
export function called(call: ToolCall, known: Tool | undefined): Tool {
  const tool = known?.name === call.name ? known : { ...(known ?? newTool(call.id, call.name)), name: call.name, kind: KINDS[call.name] ?? "other" };
  return {
    ...tool, id: call.id, arguments: call.arguments, rawArguments: call.rawArguments ?? "", rawLength: 0,
    state: tool.state === "writing" ? "ready" : tool.state,
  };
}

export function started(tool: Tool, event: ToolExecutionStart, time: string): Tool {
  return {
    ...tool, name: event.toolName, arguments: event.arguments, title: event.title, kind: event.kind,
    locations: event.locations, startedAt: time, state: tool.result ? tool.state : "running",
  };
}

export function asked(tool: Tool, question: PermissionRequest): Tool {
  // The title of a question about a sub-agent's call is not this call's.
  return { ...tool, state: "waiting", title: tool.title ?? (question.child ? undefined : question.title), kind: question.child ? tool.kind : question.kind };
}

/** The last question about the call is closed. */
export function answered(tool: Tool, outcome: string, isChilds: boolean): Tool {
  if (tool.state !== "waiting") return tool;
  return { ...tool, state: tool.startedAt ? "running" : "ready", rejected: tool.rejected || (outcome === "rejected" && !isChilds) };
}

export function printed(tool: Tool, { channel, offset, delta }: ToolDelta): Tool {
  if (tool.result) return tool;
  const known = tool.offsets[channel];
  // Behind a `partial` it is not known which channel its offset is of: what comes first goes on from there.
  const unknown = known === undefined && tool.offsets.progress === undefined && tool.output.length > 0;
  if (unknown && offset > 0 && tool.output.at(-1)!.text.endsWith(delta)) return tool;
  const { added, missed, length } = grow(known ?? (unknown ? offset : 0), offset, delta);
  if (added === "") return tool;
  return { ...tool, output: append(tool.output, channel, added, missed), offsets: { ...tool.offsets, [channel]: length } };
}

/** So much of one channel in a row is kept, twice as much until it is cut: the daemon keeps the rest of it. */
const KEPT = 1 << 19;

function append(output: readonly OutputPart[], channel: Channel, text: string, missed: number): readonly OutputPart[] {
  const last = output.at(-1);
  if (!last || last.channel !== channel || missed > 0) return [...output, { channel, text, missed }];
  const whole = last.text + text;
  const cut = whole.length > 2 * KEPT ? whole.length - KEPT : 0;
  return [...output.slice(0, -1), { channel, text: whole.slice(cut), missed: last.missed + cut }];
}

export function ended(tool: Tool, event: ToolExecutionEnd): Tool {
  return resulted({ ...tool, durationMs: event.durationMs }, event.result);
}

/** With its result. What it printed stays where it was seen whole; else the details have it where it has colours. */
export function resulted(tool: Tool, result: ToolResultMessage): Tool {
  const whole = tool.output.every((part) => part.missed === 0 && part.channel !== "progress");
  return {
    ...tool,
    name: tool.name || result.toolName,
    result: result.content, resultId: result.messageId, isError: result.isError, details: result.details,
    durationMs: tool.durationMs ?? (result.details?.type === "command" ? result.details.durationMs : undefined),
    output: whole && tool.output.length > 0 ? tool.output : printedOf(result.details),
    offsets: {},
    state: stateOf(result, tool.rejected),
  };
}

function printedOf(details: ToolDetails | undefined): readonly OutputPart[] {
  if (details?.type !== "command" || !details.printed) return [];
  const { printed, truncated, totalBytes } = details;
  return [{ channel: "stdout", text: printed, missed: truncated ? Math.max(0, totalBytes - new TextEncoder().encode(printed).length) : 0 }];
}

/** The daemon tells by words what a call came to that did not run to its end (protocol, "Events"). */
function stateOf(result: ToolResultMessage, rejected: boolean): ToolState {
  if (!result.isError) return "done";
  const text = result.content[0]?.type === "text" ? result.content[0].text : "";
  if (text.startsWith("Outcome unknown: the daemon stopped")) return "unknown";
  if (text.startsWith("Tool execution aborted.")) return "stopped";
  return rejected || text.startsWith("The user rejected this tool call.") ? "refused" : "failed";
}
