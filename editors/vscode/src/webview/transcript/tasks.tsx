/** Sub-agents, nested in the call that runs them: what each does now, and on request all it has done. */
import { useComputed } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { useStore } from "../model/store";
import type { SessionView, Tool } from "../model/view";
import { Elapsed } from "./clock";
import { Entries } from "./entries";
import { useFold } from "./folds";
import { Icon } from "./icon";
import { Output } from "./output";
import { Results } from "./tool-body";
import { duration } from "./words";

export function Tasks({ tool }: { tool: Tool }) {
  const store = useStore();
  const children = useComputed(() => {
    const all = Object.values(store.session.value?.children ?? {});
    return all.filter((child) => child.session.parent?.toolCallId === tool.id);
  }).value;
  useKept(tool.id, children.length === 0 ? tool.result !== undefined : children.some((child) => child.hasMore || child.entries.length === 0));
  const steps = tool.output.filter((part) => part.channel === "progress");
  return (
    <div class="tasks">
      {children.map((child) => <Child key={child.session.sessionId} view={child} />)}
      {/* Where the sub-agents themselves were not seen, their steps are told in a line each. */}
      {children.length === 0 && steps.length > 0 && <Output parts={steps} fromEnd />}
      {tool.result && children.length === 0 && <Results blocks={tool.result} />}
      {tool.isError && children.length > 0 && <Results blocks={tool.result ?? []} />}
    </div>
  );
}

/** Reads what is kept of the sub-agents, once each time it turns out to be missing. Where it cannot be had, their results tell. */
function useKept(toolCallId: string, missing: boolean): void {
  const store = useStore();
  useEffect(() => {
    if (missing) store.children(toolCallId).catch(() => undefined);
  }, [store, toolCallId, missing]);
}

function Child({ view }: { view: SessionView }) {
  const [open, toggle] = useFold(view.session.sessionId, false);
  const end = view.entries.findLast((entry) => entry.type === "run");
  // Of one that was read and not seen, the last words tell how it ended.
  const ended = end?.stopReason ?? view.entries.findLast((entry) => entry.type === "assistant")?.stopReason;
  const failed = ended !== undefined && ended !== "stop";
  const state = view.state !== "idle" ? "loading" : failed ? "error" : ended ? "check" : "circle-large";
  const label = view.state === "waiting" ? "waiting for your answer" : view.state === "running" ? "running" : failed ? ended : "done";
  return (
    <div class={`task${view.state !== "idle" || !ended ? "" : failed ? " is-failed" : " is-done"}`} role="group" aria-label={`Sub-agent ${view.session.title}, ${label}`}>
      <button type="button" class="tool-bar tool-main" aria-expanded={open} onClick={toggle}>
        <Icon name={open ? "chevron-down" : "chevron-right"} />
        <span class="tool-title">{view.session.title || "Sub-agent"}</span>
        <span class="tool-time">
          {view.run ? <Elapsed since={view.run.startedAt} /> : end?.durationMs !== undefined ? duration(end.durationMs) : null}
        </span>
        <span class="tool-state" title={label}><Icon name={state} spin={state === "loading"} /></span>
      </button>
      {open && <div class="task-entries"><Entries entries={view.entries} /></div>}
    </div>
  );
}
