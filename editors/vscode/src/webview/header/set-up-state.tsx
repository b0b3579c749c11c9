import { useStore } from "../model/store";
import { plural } from "../transcript/words";
import { Icon } from "../ui/icon";

/** In a conversation, that something of the set-up wants a look: Restricted Mode, problems. */
export function SetUpState() {
  const store = useStore();
  const around = store.surroundings.value;
  // Without a conversation the set-up itself is shown.
  if (!around || !store.session.value) return null;
  const problems = around.problems.filter((problem) => problem.severity !== "info");
  const worst = problems.some((problem) => problem.severity === "error") ? "error" : "warning";
  return (
    <>
      {!around.trusted && (
        <button type="button" class="icon-button status-icon is-warning" aria-label="Restricted Mode" title="Restricted Mode: manage trust" onClick={() => void store.attempt("action", { name: "manageTrust" })}>
          <Icon name="shield" />
        </button>
      )}
      {problems.length > 0 && (
        <button type="button" class={`icon-button status-icon is-${worst}`} aria-label={plural(problems.length, "problem") + " of the set-up"} title={problems.map((problem) => problem.message).join("\n")} onClick={() => {
          store.setUp.value = true;
        }}>
          <Icon name={worst} />
        </button>
      )}
    </>
  );
}
