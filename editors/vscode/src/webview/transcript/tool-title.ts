/** A tool call in a few words, before the daemon has told its title and after. */
import type { Tool } from "../model/view";
import { plural } from "./words";

const VERBS: Record<string, string> = {
  read_file: "Read", list_directory: "List", find_files: "Find", search_files: "Search", edit_file: "Edit", write_file: "Write",
  web_fetch: "Fetch", bash_output: "Read output", bash_kill: "Stop command", task: "Sub-agents", todo_write: "Update the to-do list",
  todo_read: "Read the to-do list", diagnostics: "Read problems", report_findings: "Report findings", skill: "Load skill", bash: "Run",
};
const TELLING = ["command", "file_path", "path", "pattern", "query", "url", "name", "id"];

export function titleOf(tool: Tool): string {
  if (tool.name === "bash") return commandOf(tool) ?? tool.title ?? "Run a command";
  if (tool.title) return tool.title;
  const verb = VERBS[tool.name] ?? (tool.name || "Tool call");
  const subject = subjectOf(tool);
  return subject === null ? verb : `${verb} ${subject}`;
}

function commandOf(tool: Tool): string | null {
  const command = tool.arguments?.command ?? partly("command", tool.rawArguments);
  return typeof command === "string" && command.trim() !== "" ? command.trim() : null;
}

function subjectOf(tool: Tool): string | null {
  for (const name of TELLING) {
    const value = tool.arguments?.[name] ?? partly(name, tool.rawArguments);
    if (typeof value === "string" && value !== "") return value;
  }
  return null;
}

/** What a title needs stands at the beginning; the text of a file that is written may be long. */
const LOOKED_AT = 4_000;

/** A string of an object whose JSON is still being written. */
function partly(name: string, json: string): string | null {
  const found = new RegExp(`"${name}"\\s*:\\s*("(?:[^"\\\\]|\\\\.)*)("?)`).exec(json.slice(0, LOOKED_AT));
  if (!found) return null;
  try {
    return JSON.parse(`${found[1]!}"`) as string;
  } catch {
    return null; // in the middle of an escape
  }
}

/** What came of it, in a word or two. */
export function hintOf({ details, state }: Tool): string | null {
  if (!details || state === "failed" && details.type !== "command") return null;
  switch (details.type) {
    case "command":
      if (details.signal) return details.signal;
      return details.exitCode === 0 || details.exitCode === null ? null : `exit ${details.exitCode}`;
    case "read": return details.endLine === 0 ? null : details.startLine === 1 && details.endLine === details.totalLines
      ? plural(details.totalLines, "line") : `${details.startLine}–${details.endLine} of ${details.totalLines}`;
    case "search": return `${plural(details.matches, "match", "matches")}${details.truncated ? "+" : ""}`;
    default: return null;
  }
}
