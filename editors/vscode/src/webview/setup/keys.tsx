import type { Surroundings } from "../../shared/messages";
import { providerName } from "../header/models";
import { useStore } from "../model/store";
import { plural } from "../transcript/words";
import { Icon } from "../ui/icon";
import { Frame, Way } from "./connection";

/** Whether a prompt would find no model to answer it. The scripted demo counts where the user chose it. */
export function lacksModel({ models, defaultModel }: Surroundings): boolean {
  if (defaultModel === null) return true;
  const chosen = models.find((model) => model.id === defaultModel);
  return chosen !== undefined && !chosen.available;
}

interface Provider { id: string; available: number; count: number; key: boolean; reason: string | undefined }

function providersOf({ models, keys }: Surroundings): Provider[] {
  const ids = [...new Set(models.map((model) => model.provider))].filter((id) => id !== "scripted");
  return ids.map((id) => {
    const own = models.filter((model) => model.provider === id);
    return { id, count: own.length, available: own.filter((model) => model.available).length, key: keys.includes(id), reason: own.find((model) => !model.available)?.reason };
  });
}

/** Where models come from: a key for each provider, or none for what runs on this machine. */
export function Keys() {
  const store = useStore();
  const around = store.surroundings.value!;
  const providers = providersOf(around);
  const lacking = lacksModel(around);
  return (
    <Frame icon="key" title={lacking ? "Choose where models come from" : "Models and keys"} ways={
      <><Way name="demo" secondary icon="play">Try the demo without a model</Way><Way name="walkthrough" secondary icon="mortar-board">Take the tour</Way></>
    }>
      <p class="muted">Keys are kept in VS Code's secret storage and are never written to files or logs.</p>
      <ul class="plain-list providers">
        {providers.map(({ id, available, count, key, reason }) => (
          <li key={id}>
            <Icon name={available > 0 ? "pass-filled" : "circle-large-outline"} class={available > 0 ? "good" : "muted"} />
            <span class="provider-words">
              <span>{providerName(id)}</span>
              <span class="muted small">{available > 0 ? `${plural(available, "model")}${key ? ", key set here" : ""}` : reason ?? plural(count, "model")}</span>
            </span>
            {(key || available === 0) && <button type="button" class={`button compact${available > 0 ? " secondary" : ""}`} aria-label={`${key ? "Change key" : "Set key"} for ${providerName(id)}`}
              onClick={() => void store.attempt("action", { name: "setKey", argument: id })}>{key ? "Change key" : "Set key"}</button>}
          </li>
        ))}
      </ul>
      {providers.length === 0 && <p>agentd knows of no provider. <button type="button" class="link" onClick={() => void store.attempt("action", { name: "doctor" })}>Check the set-up</button></p>}
    </Frame>
  );
}
