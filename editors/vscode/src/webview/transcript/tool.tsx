/** A tool call as a card: what it is about in one line, the rest on request. */
import { useId } from "preact/hooks";
import { memo } from "../memo";
import type { Tool, ToolState } from "../model/view";
import { Elapsed } from "./clock";
import { Numbers, OpenDiff, singleEdit } from "./diff";
import { useFold } from "./folds";
import { Icon } from "./icon";
import { ToolBody } from "./tool-body";
import { titleOf, hintOf } from "./tool-title";
import { duration } from "./words";

const ICONS: Record<string, string> = {
  read: "file", edit: "edit", delete: "trash", move: "arrow-right", search: "search", execute: "terminal", think: "lightbulb",
  fetch: "globe", switch_mode: "settings", other: "tools",
};
const NAMED: Record<string, string> = { task: "organization", todo_write: "checklist", todo_read: "checklist", list_directory: "folder", skill: "book", report_findings: "warning" };

const STATES: Record<ToolState, { icon: string; label: string }> = {
  writing: { icon: "loading", label: "being written" },
  ready: { icon: "circle-large", label: "waiting for its turn" },
  waiting: { icon: "question", label: "waiting for your answer" },
  running: { icon: "loading", label: "running" },
  done: { icon: "check", label: "done" },
  failed: { icon: "error", label: "failed" },
  refused: { icon: "circle-slash", label: "refused" },
  stopped: { icon: "debug-stop", label: "stopped" },
  unknown: { icon: "question", label: "outcome unknown" },
};

export const ToolCard = memo(function ToolCard({ tool, promptId }: { tool: Tool; promptId: string | undefined }) {
  const [open, toggle] = useFold(tool.id, opensItself(tool));
  const body = useId();
  const state = STATES[tool.state];
  const title = titleOf(tool);
  const edit = singleEdit(tool);
  return (
    <div class={`tool kind-${tool.kind}`} data-tool-call-id={tool.id} data-state={tool.state} role="group" aria-label={`${title}, ${state.label}`}>
      <div class="tool-bar">
        <button type="button" class="tool-main" aria-expanded={open} aria-controls={body} onClick={toggle}>
          <Icon name={NAMED[tool.name] ?? ICONS[tool.kind] ?? "tools"} />
          <span class={`tool-title${tool.name === "bash" ? " mono" : ""}`} title={title}>{title}</span>
          <Hint tool={tool} />
          <span class="tool-time">
            {tool.state === "running" && tool.startedAt ? <Elapsed since={tool.startedAt} /> : told(tool.durationMs)}
          </span>
          <span class="tool-state" title={state.label}><Icon name={state.icon} spin={state.icon === "loading"} /></span>
          <span class="visually-hidden">{state.label}</span>
          <Icon name={open ? "chevron-down" : "chevron-right"} />
        </button>
        {edit && <OpenDiff uri={edit.uri} patch={edit.patch} promptId={promptId} />}
      </div>
      <div id={body} hidden={!open}>{open && <ToolBody tool={tool} promptId={promptId} />}</div>
    </div>
  );
});

/** What was changed and what went wrong is worth its room; what was looked at is not. */
function opensItself(tool: Tool): boolean {
  if (tool.state === "failed") return tool.kind === "execute" || tool.kind === "edit";
  if (tool.state === "running") return tool.kind === "execute" || tool.name === "task";
  return tool.details?.type === "edit";
}

function told(ms: number | undefined): string | null {
  return ms === undefined || ms < 100 ? null : duration(ms);
}

function Hint({ tool }: { tool: Tool }) {
  const { details } = tool;
  if (details?.type === "edit") {
    const sum = (of: "additions" | "deletions") => details.files.reduce((total, file) => total + file[of], 0);
    return <Numbers additions={sum("additions")} deletions={sum("deletions")} />;
  }
  const hint = hintOf(tool);
  return hint === null ? null : <span class="tool-hint">{hint}</span>;
}
