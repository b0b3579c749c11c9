/** Time that passes, drawn once a second (ten times while it is short, unless nothing shall move) and only while it is looked at. */
import { useEffect, useReducer } from "preact/hooks";
import { useStore } from "../model/store";
import { duration } from "./words";

export function Elapsed({ since }: { since: string }) {
  const { skew, surroundings } = useStore();
  const still = surroundings.value?.reduceMotion || matchMedia("(prefers-reduced-motion: reduce)").matches;
  const [, redraw] = useReducer((n: number) => n + 1, 0);
  const passed = Math.max(0, Date.now() - skew() - Date.parse(since));
  useEffect(() => {
    const timer = setTimeout(redraw, passed < 9_900 && !still ? 100 : 1000 - (passed % 1000));
    return () => clearTimeout(timer);
  });
  return <span class="elapsed">{duration(still ? passed - (passed % 1000) : passed)}</span>;
}

/** What is left of `delayMs` since then, in whole seconds. */
export function Remaining({ since, delayMs }: { since: string; delayMs: number }) {
  const { skew } = useStore();
  const [, redraw] = useReducer((n: number) => n + 1, 0);
  const left = Math.max(0, Date.parse(since) + delayMs + skew() - Date.now());
  useEffect(() => {
    if (left === 0) return;
    const timer = setTimeout(redraw, Math.min(left, 250));
    return () => clearTimeout(timer);
  });
  return <span>{left === 0 ? "now" : `in ${Math.ceil(left / 1000)} s`}</span>;
}
