/** The last line of a conversation that goes on: what it does right now. */
import type { SessionView } from "../model/view";
import { Elapsed, Remaining } from "./clock";
import { Icon } from "./icon";
import { count } from "./words";

export function isLive(view: SessionView): boolean {
  return view.state !== "idle" || view.compacting !== null;
}

export function Live({ view }: { view: SessionView }) {
  const { run } = view;
  const retry = run?.retry;
  return (
    <div class={`live${view.state === "waiting" ? " is-waiting" : ""}`}>
      <Icon name={view.state === "waiting" ? "question" : "loading"} spin={view.state !== "waiting"} />
      <span class="live-words">
        {view.compacting ? `Summing up ${count(view.compacting.tokensBefore)} tokens for the model`
          : view.state === "waiting" ? "Waiting for your answer"
          : retry ? <>{retry.reason} Trying again <Remaining since={retry.time} delayMs={retry.delayMs} /> ({retry.attempt} of {retry.maxAttempts})</>
          : doing(view)}
      </span>
      {run && <Elapsed since={run.startedAt} />}
    </div>
  );
}

function doing(view: SessionView): string {
  const last = view.entries.at(-1);
  if (last?.type !== "assistant") return "Asking the model";
  const block = last.blocks.at(-1);
  if (!last.done) return block?.type === "thinking" ? "Thinking" : block?.type === "tool" ? "Preparing a tool call" : "Answering";
  const calls = last.blocks.flatMap((each) => (each.type === "tool" ? [each.tool] : []));
  return calls.length > 0 && calls.every((tool) => tool.result) ? "Asking the model" : "Working";
}
