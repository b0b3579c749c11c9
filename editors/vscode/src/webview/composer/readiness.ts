import type { Store } from "../model/store";

/** Whether a prompt would have to wait, join or interrupt. A compaction counts, though the session is idle then. */
export function isBusy(store: Store): boolean {
  const view = store.session.value;
  return view !== null && (view.state !== "idle" || view.compacting !== null);
}

/** Why nothing can be sent now; null where it can. While agentd starts a prompt waits for it. */
export function whyNot(store: Store): string | null {
  const around = store.surroundings.value;
  if (!around) return "agentd is starting…";
  if (around.connection.state !== "ready" && around.connection.state !== "starting") return "agentd does not run.";
  if (store.session.value?.session.parent) return "A sub-agent takes no prompts. Its parent does.";
  return null;
}
