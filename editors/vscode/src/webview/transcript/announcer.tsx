/**
 * What a screen reader is told by itself: a whole answer once it is there, that a run began and how it ended. The log
 * itself is silent, or every word would be read as it comes.
 */
import { useEffect, useRef, useState } from "preact/hooks";
import type { Entry, SessionView } from "../model/view";
import { titleOf } from "./tool-title";

const LONGEST = 600;
const SAID_MS = 2_000;

export function Announcer({ view }: { view: SessionView }) {
  const [words, setWords] = useState<{ id: number; text: string }[]>([]);
  const told = useRef<{ entries: readonly Entry[]; state: string }>({ entries: view.entries, state: view.state });
  const last = useRef(0);
  useEffect(() => {
    const before = told.current;
    told.current = { entries: view.entries, state: view.state };
    const said = before.entries === view.entries ? [] : news(before.entries, view.entries);
    if (before.state === "idle" && view.state !== "idle") said.unshift("agentd is working");
    if (said.length === 0) return;
    const id = ++last.current;
    setWords((all) => [...all, { id, text: said.join(". ") }]);
    // What was said is said: who reads the page by hand shall not meet it twice.
    setTimeout(() => setWords((all) => all.filter((one) => one.id !== id)), SAID_MS);
  }, [view.entries, view.state]);
  return <div class="visually-hidden" role="status" aria-live="polite">{words.map(({ id, text }) => <p key={id}>{text}</p>)}</div>;
}

function news(before: readonly Entry[], after: readonly Entry[]): string[] {
  const said: string[] = [];
  // Only the end can have news; a page of earlier messages is none.
  for (let at = after.length - 1; at >= Math.max(0, after.length - 4); at--) {
    const entry = after[at]!;
    const known = before.find((other) => other.id === entry.id);
    if (known === entry) break;
    const words = wordsOf(entry, known);
    if (words) said.unshift(words);
  }
  return said;
}

function wordsOf(entry: Entry, known: Entry | undefined): string | null {
  if (entry.type === "assistant" && entry.done && !(known?.type === "assistant" && known.done)) {
    const text = entry.blocks.map((block) => (block.type === "text" ? block.text.slice(0, 10 * LONGEST) : "")).join(" ").replace(/```[^]*?```/g, "code").replace(/[*_`#|>]+/g, "").replace(/\s+/g, " ").trim();
    const calls = entry.blocks.flatMap((block) => (block.type === "tool" ? [titleOf(block.tool)] : []));
    return [text.length > LONGEST ? `${text.slice(0, LONGEST)}…` : text, ...calls].filter(Boolean).join(". ") || null;
  }
  if (known) return null;
  if (entry.type === "run") return entry.error ? `Failed: ${entry.error.message}` : entry.stopReason === "stop" ? "Done" : `Ended: ${entry.stopReason}`;
  return entry.type === "notice" ? entry.message : null;
}
