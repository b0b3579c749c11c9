import { useStore } from "../model/store";
import type { Problem } from "../../shared/wire";
import { fileName } from "../transcript/words";
import { Icon } from "../ui/icon";

/** In Restricted Mode: what does not work, and the way out. */
export function Restricted() {
  const store = useStore();
  if (store.surroundings.value?.trusted !== false) return null;
  return (
    <div class="callout is-warning" role="note">
      <Icon name="shield" />
      <div class="callout-text">
        <b>Restricted Mode.</b> agentd reads and answers here. Every edit and command asks, and nothing of the workspace's own configuration is loaded.
        <div class="callout-actions">
          <button type="button" class="button secondary compact" onClick={() => void store.attempt("action", { name: "manageTrust" })}>Manage trust</button>
        </div>
      </div>
    </div>
  );
}

/** What is wrong with the set-up, worst first, each leading to its place. */
export function Problems() {
  const store = useStore();
  const ranks: Record<Problem["severity"], number> = { error: 0, warning: 1, info: 2 };
  const problems = [...(store.surroundings.value?.problems ?? [])].sort((a, b) => ranks[a.severity] - ranks[b.severity]);
  if (problems.length === 0) return null;
  const worst = problems[0]!.severity;
  return (
    <section class={`callout is-${worst} problems`} aria-label="Problems of the set-up">
      <Icon name={worst === "info" ? "info" : worst} />
      <ul class="plain-list callout-text">
        {problems.map(({ severity, message, uri, line }, index) => (
          <li key={index}>
            {severity !== worst && <Icon name={severity} />}
            <span>{message}</span>
            {uri !== undefined && (
              <button type="button" class="link small" onClick={() => void store.attempt("openFile", { uri, ...(line === undefined ? {} : { line }) })}>
                {fileName(uri)}{line === undefined ? "" : `:${line + 1}`}
              </button>
            )}
          </li>
        ))}
      </ul>
    </section>
  );
}
