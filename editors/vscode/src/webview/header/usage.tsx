import { useCallback, useRef, useState } from "preact/hooks";
import type { Usage } from "../../shared/wire";
import { useStore } from "../model/store";
import { count, money } from "../transcript/words";
import { Icon } from "../ui/icon";
import { Popup } from "../ui/popup";

/** From here on it is worth to say that the window fills. */
const FULL = 0.7;

/** How full the context window is, as a ring; what the session has used, behind it. */
export function UsageMeter() {
  const store = useStore();
  const button = useRef<HTMLButtonElement>(null);
  const [open, setOpen] = useState(false);
  const close = useCallback(() => setOpen(false), []);
  const view = store.session.value;
  const usage = view?.session.usage;
  if (!view || !usage) return null;
  const share = shareOf(usage);
  const idle = view.state === "idle" && view.compacting === null;
  const compact = () => void store.attempt("compact", { sessionId: view.session.sessionId });
  return (
    <>
      {share !== null && share >= FULL && idle && (
        <button type="button" class="button secondary compact compact-now" title={`The context window is ${percent(share)} full: sum the history up`} onClick={compact}>Compact</button>
      )}
      <button
        ref={button} type="button" class={`usage${share !== null && share >= FULL ? " full" : ""}`} aria-haspopup="dialog" aria-expanded={open}
        aria-label={`Usage: ${share === null ? "" : `context window ${percent(share)} full, `}${usage.cost ? money(usage.cost.total) : `${count(usage.total)} tokens`}`}
        title="What this session has used" onClick={() => setOpen(!open)}
      >
        {share === null ? <Icon name="graph" /> : <Ring share={share} />}
        {usage.cost && <span class="usage-cost">{money(usage.cost.total)}</span>}
      </button>
      {open && (
        <Popup anchor={button} onClose={close} align="end" label="Usage" class="usage-popup">
          <Details usage={usage} share={share} />
          <button type="button" class="button secondary" disabled={!idle} title={idle ? "" : "Possible once the prompt has ended"} onClick={() => {
            close();
            compact();
          }}><Icon name="fold" /> Compact the history</button>
        </Popup>
      )}
    </>
  );
}

/** Null where the window's size is not known. */
export function shareOf(usage: Usage): number | null {
  return usage.contextWindow ? Math.min(1, usage.contextTokens / usage.contextWindow) : null;
}

function percent(share: number): string {
  return `${Math.round(share * 100)} %`;
}

function Ring({ share }: { share: number }) {
  const around = 2 * Math.PI * 6;
  return (
    <svg class="ring" viewBox="0 0 16 16" aria-hidden="true">
      <circle cx="8" cy="8" r="6" class="ring-ground" />
      <circle cx="8" cy="8" r="6" class="ring-share" stroke-dasharray={`${share * around} ${around}`} transform="rotate(-90 8 8)" />
    </svg>
  );
}

function Details({ usage, share }: { usage: Usage; share: number | null }) {
  const lines: [string, string][] = [
    ["Input", count(usage.input)], ["From the cache", count(usage.cacheRead)], ["Into the cache", count(usage.cacheWrite)],
    ["Output", count(usage.output)], ["of it thinking", count(usage.reasoning)],
  ];
  return (
    <>
      <h3>Context window</h3>
      {share === null
        ? <p>{count(usage.contextTokens)} tokens. How large the window is, is not known.</p>
        : (
          <>
            <div class={`bar${share >= FULL ? " full" : ""}`}><span style={{ width: percent(share).replace(" ", "") }} /></div>
            <p>{count(usage.contextTokens)} of {count(usage.contextWindow!)} tokens, {percent(share)}</p>
          </>
        )}
      <h3>This session</h3>
      <dl>
        {lines.filter(([, value]) => value !== "0").map(([name, value]) => <><dt>{name}</dt><dd>{value}</dd></>)}
        {usage.cost && <><dt>Cost</dt><dd>{money(usage.cost.total)}</dd></>}
      </dl>
    </>
  );
}
