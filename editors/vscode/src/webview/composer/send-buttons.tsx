import { useStore } from "../model/store";
import { Icon } from "../ui/icon";
import { MenuButton } from "../ui/menu";
import type { WhenBusy } from "./box";
import { useBox } from "./context";
import { isEmpty } from "./draft";
import { isBusy, whyNot } from "./readiness";

const WORDS = {
  steer: { label: "Steer", icon: "compass", means: "The running prompt is told at its next step" },
  queue: { label: "Queue", icon: "layers", means: "Runs when the running prompt has ended" },
} as const;

/** What Enter and Alt+Enter do while a prompt runs. */
export function waysOf(whenRunning: "steer" | "queue"): { first: "steer" | "queue"; second: "steer" | "queue" } {
  return whenRunning === "queue" ? { first: "queue", second: "steer" } : { first: "steer", second: "queue" };
}

export function SendButtons() {
  const store = useStore();
  const box = useBox();
  const busy = isBusy(store);
  const empty = isEmpty(box.draft.value);
  const reason = whyNot(store);
  if (!busy) {
    return (
      <button
        type="button" class="send primary" aria-label="Send" title={reason ?? "Send (Enter)"} disabled={empty || reason !== null}
        onClick={() => void box.send("queue")}
      >
        {box.sending.value > 0 ? <Icon name="loading" spin /> : <Icon name="arrow-up" />}
      </button>
    );
  }
  const { first, second } = waysOf(store.surroundings.value?.whenRunning ?? "steer");
  return (
    <>
      {!empty && (
        <>
          <WayButton way={second} keys="Alt+Enter" />
          <WayButton way={first} keys="Enter" primary />
          <MenuButton class="icon-button narrow" label="More ways to send" align="end" items={[
            { label: "Interrupt and send", icon: "debug-step-over", detail: "The running prompt is stopped, this one runs next", run: () => void box.send("interrupt") },
          ]}><Icon name="chevron-down" /></MenuButton>
        </>
      )}
      <StopButton />
    </>
  );
}

function WayButton({ way, keys, primary = false }: { way: Exclude<WhenBusy, "interrupt">; keys: string; primary?: boolean }) {
  const box = useBox();
  const { label, icon, means } = WORDS[way];
  return (
    <button type="button" class={`way${primary ? " primary" : ""}`} aria-label={label} title={`${label}: ${means} (${keys})`} onClick={() => void box.send(way)}>
      <Icon name={icon} /><span class="way-label">{label}</span>
    </button>
  );
}

function StopButton() {
  const store = useStore();
  const box = useBox();
  const waiting = store.session.value?.queue.some((one) => one.kind === "queue") ?? false;
  return (
    <>
      {waiting && (
        <MenuButton class="icon-button narrow" label="More ways to stop" align="end" items={[
          { label: "Stop, and go on with the queue", icon: "debug-continue", detail: "The next prompt of the queue runs", run: () => void box.stop(true) },
        ]}><Icon name="ellipsis" /></MenuButton>
      )}
      <button type="button" class="send stop" aria-label="Stop" title="Stop (Escape in the empty box)" onClick={() => void box.stop()}>
        <Icon name="stop-circle" />
      </button>
    </>
  );
}
