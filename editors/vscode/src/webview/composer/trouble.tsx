import { useStore } from "../model/store";
import { Icon } from "../ui/icon";
import { useBox } from "./context";

/** Why a prompt stands in the box again, and what can be done about it. */
export function TroubleNote() {
  const store = useStore();
  const box = useBox();
  const trouble = box.trouble.value;
  if (!trouble) return <div role="alert" />;
  const { kind, message, hint, command } = trouble;
  const provider = providerOf(store.session.value?.session.model ?? store.surroundings.value?.defaultModel ?? null);
  return (
    <div role="alert" class="trouble">
      <Icon name="error" class="trouble-icon" />
      <div class="trouble-words">
        <p>{plainly(message)}</p>
        {hint && <p class="muted">{hint}</p>}
        <div class="trouble-ways">
          {command && kind === "invalidParams" && <button type="button" class="link" onClick={() => void box.send("queue", "text")}>Send as text</button>}
          {(kind === "authRequired" || kind === "noModel") && (
            <button type="button" class="link" onClick={() => void store.attempt("action", { name: "setKey", ...(provider ? { argument: provider } : {}) })}>Set a key…</button>
          )}
        </div>
      </div>
      <button type="button" class="icon-button tiny" aria-label="Dismiss" onClick={() => {
        box.complain(null);
        box.askFocus();
      }}><Icon name="close" /></button>
    </div>
  );
}

function providerOf(model: string | null): string | undefined {
  return model?.split("/")[0];
}

/** Without the place in the request, which means nothing to a user: `/prompt/0/name: There is …`. */
function plainly(message: string): string {
  return message.replace(/^\/(?:[\w-]+\/?)+: /, "");
}
