import { useStore } from "../model/store";
import { Select, type Option } from "../ui/select";
import { MODES, NOT_HERE, ORDER } from "./modes";
import type { Mode } from "../../shared/wire";

/** What the agent may do unasked, in the shown session or else in the next one. */
export function ModePicker() {
  const store = useStore();
  const around = store.surroundings.value;
  if (!around) return null;
  const session = store.session.value?.session;
  const mode = session?.mode ?? around.defaultMode;
  // A newer daemon may know further ones.
  const { label, icon, means } = MODES[mode] ?? { label: mode, icon: "question", means: "" };
  return (
    <Select
      class={`mode mode-${mode}`} label="Mode" text={label} icon={icon} title={`Mode ${label}: ${means}`} value={mode}
      options={optionsOf(around.modes, mode, around.trusted)}
      disabled={session?.parent !== undefined}
      onPick={(chosen) => void store.attempt("choose", { mode: chosen as Mode, ...(session ? { sessionId: session.sessionId } : {}) })}
      {...(around.trusted ? {} : { footer: <p class="popup-note">In Restricted Mode all but Plan act as Ask.</p> })}
    />
  );
}

/** `full` is not spoken of where it is not permitted. */
function optionsOf(offered: readonly Mode[], current: Mode, trusted: boolean): Option[] {
  return ORDER.flatMap((mode) => {
    const { label, icon, means } = MODES[mode];
    const here = offered.includes(mode) || mode === current;
    if (!here && NOT_HERE[mode] === undefined) return [];
    const reason = here ? undefined : NOT_HERE[mode];
    const acts = !trusted && mode !== "plan" && mode !== "ask" ? `${means} (Not in Restricted Mode.)` : means;
    return [{ id: mode, label, icon, detail: acts, ...(reason === undefined ? {} : { disabled: reason }) }];
  });
}
