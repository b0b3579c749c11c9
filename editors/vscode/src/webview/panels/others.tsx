import { useStore } from "../model/store";
import { plural } from "../transcript/words";
import { Icon } from "../ui/icon";
import { Section } from "./section";

/** Sessions that go on unseen; those that wait for an answer first. */
export function OthersPanel() {
  const store = useStore();
  const shown = store.session.value?.session.sessionId;
  const others = store.others.value.filter((one) => one.sessionId !== shown && one.state !== "idle");
  if (others.length === 0) return null;
  const waiting = others.filter((one) => one.state === "waiting");
  const sorted = [...waiting, ...others.filter((one) => one.state !== "waiting")];
  const open = async (sessionId: string) => {
    const found = await store.attempt("open", { sessionId });
    if (found) store.show(found);
  };
  return (
    <Section name="Other sessions" title="Other sessions" open={waiting.length > 0} summary={summaryOf(waiting.length, others.length - waiting.length)}>
      <ul class="plain-list">
        {sorted.map(({ sessionId, title, state }) => (
          <li key={sessionId}>
            <button type="button" class="row-button" onClick={() => void open(sessionId)}>
              {state === "waiting" ? <Icon name="bell-dot" class="attention" /> : <Icon name="loading" spin />}
              <span class="ellipsis grow">{title || "New session"}</span>
              <span class="muted small">{state === "waiting" ? "waits for you" : "running"}</span>
            </button>
          </li>
        ))}
      </ul>
    </Section>
  );
}

function summaryOf(waiting: number, running: number): string {
  return [waiting > 0 ? `${plural(waiting, "waits", "wait")} for you` : "", running > 0 ? `${running} running` : ""].filter(Boolean).join(", ");
}
