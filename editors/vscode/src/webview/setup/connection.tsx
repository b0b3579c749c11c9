import type { ComponentChildren } from "preact";
import { useEffect, useState } from "preact/hooks";
import { useStore } from "../model/store";
import { Icon } from "../ui/icon";

interface FrameProps { icon: string; spin?: boolean; title: string; children?: ComponentChildren; ways?: ComponentChildren }

export function Frame({ icon, spin = false, title, children, ways }: FrameProps) {
  return (
    <section class="screen" aria-label={title}>
      <span class="screen-icon"><Icon name={icon} spin={spin} /></span>
      <h2>{title}</h2>
      {children}
      {ways && <div class="ways">{ways}</div>}
    </section>
  );
}

export function Way({ name, argument, children, secondary = false, icon }: {
  name: "install" | "chooseProgram" | "setKey" | "demo" | "restart" | "showLog" | "manageTrust" | "doctor" | "walkthrough" | "openSettings";
  argument?: string; children: string; secondary?: boolean; icon?: string;
}) {
  const store = useStore();
  const [doing, setDoing] = useState(false);
  return (
    <button type="button" class={`button${secondary ? " secondary" : ""}`} disabled={doing} onClick={() => {
      setDoing(true);
      void store.attempt("action", { name, ...(argument === undefined ? {} : { argument }) }).finally(() => setDoing(false));
    }}>
      {icon && <Icon name={icon} />}{children}
    </button>
  );
}

export function Missing({ reason }: { reason: string }) {
  return (
    <Frame icon="cloud-download" title="Install agentd" ways={<><Way name="install" icon="desktop-download">Install agentd</Way><Way name="chooseProgram" secondary icon="folder-opened">Choose the program…</Way></>}>
      <p>The coding agent is a program of its own, which runs where your files are. It was not found there.</p>
      {reason && <p class="muted small">{reason}</p>}
      <p class="muted small">Installing makes a Python environment in the extension's own folder and changes nothing else.</p>
    </Frame>
  );
}

export function Installing({ step }: { step: string }) {
  return (
    <Frame icon="loading" spin title="Installing agentd" ways={<Way name="showLog" secondary icon="output">Show log</Way>}>
      <div class="endless" role="progressbar" aria-label="Installing agentd" aria-valuetext={step} />
      <p class="muted" role="status">{step}</p>
    </Frame>
  );
}

/** Not worth a word unless it takes long. */
const LONG_MS = 5_000;

export function Starting() {
  const [long, setLong] = useState(false);
  useEffect(() => {
    const timer = setTimeout(() => setLong(true), LONG_MS);
    return () => clearTimeout(timer);
  }, []);
  return (
    <Frame icon="loading" spin title="Starting agentd" ways={long && <><Way name="showLog" secondary icon="output">Show log</Way><Way name="restart" secondary icon="refresh">Restart</Way></>}>
      {long && <p class="muted" role="status">This takes longer than it should.</p>}
    </Frame>
  );
}

export function Failed({ reason, hint }: { reason: string; hint?: string }) {
  return (
    <Frame icon="error" title="agentd does not run" ways={<><Way name="restart" icon="refresh">Restart</Way><Way name="showLog" secondary icon="output">Show log</Way><Way name="chooseProgram" secondary icon="folder-opened">Choose the program…</Way></>}>
      <p role="alert">{reason}</p>
      {hint && <p class="muted">{hint}</p>}
    </Frame>
  );
}
