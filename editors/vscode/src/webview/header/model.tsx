import { useStore } from "../model/store";
import type { Effort } from "../../shared/wire";
import { Icon } from "../ui/icon";
import { Select } from "../ui/select";
import { EFFORTS, KEY, optionsOf, shortName } from "./models";

/** The model, and how hard it thinks, of the shown session or else of the next one. */
export function ModelPicker() {
  const store = useStore();
  const around = store.surroundings.value;
  if (!around) return null;
  const session = store.session.value?.session;
  const id = session ? session.model : around.defaultModel;
  const model = around.models.find((one) => one.id === id);
  const effort = session ? session.effort : around.defaultEffort;
  const sessionId = session ? { sessionId: session.sessionId } : {};
  const name = id === null ? "No model" : shortName(model, id);
  const missing = id === null || model?.available === false;
  return (
    <Select
      class={`model${missing ? " missing" : ""}`} label="Model" filtered={around.models.length > 8} value={id}
      text={effort && model?.efforts.length ? `${name} · ${effort}` : name} title={id === null ? "No model is chosen" : `Model ${id}${model?.available === false ? `: ${model.reason ?? "not available"}` : ""}`}
      {...(missing ? { icon: "warning" } : {})}
      options={optionsOf(around.models)} empty="agentd knows of no model." disabled={session?.parent !== undefined}
      onPick={(chosen) => {
        if (chosen.startsWith(KEY)) void store.attempt("action", { name: "setKey", argument: chosen.slice(KEY.length) });
        else void store.attempt("choose", { ...sessionId, model: chosen });
      }}
      footer={model && model.efforts.length > 0 && (
        <EffortChoice efforts={model.efforts} value={effort} onPick={(chosen) => void store.attempt("choose", { ...sessionId, effort: chosen })} />
      )}
    />
  );
}

function EffortChoice({ efforts, value, onPick }: { efforts: readonly string[]; value: Effort | undefined; onPick(effort: Effort): void }) {
  const offered = EFFORTS.filter((effort) => efforts.includes(effort));
  return (
    <fieldset class="effort">
      <legend><Icon name="lightbulb" /> Effort</legend>
      <div class="effort-choices">
        {offered.map((effort) => (
          <label key={effort} class={`effort-choice${effort === value ? " chosen" : ""}`}>
            <input type="radio" name="effort" value={effort} checked={effort === value} onChange={() => onPick(effort)} />
            {effort}
          </label>
        ))}
      </div>
    </fieldset>
  );
}
