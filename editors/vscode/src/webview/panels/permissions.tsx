/**
 * The questions that wait for the user. They never take the focus: who is writing goes on writing, a word of it is
 * told aloud once, and Alt+A leads there.
 */
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import type { PermissionRequest } from "../../shared/wire";
import { part, useStore } from "../model/store";
import { plural } from "../transcript/words";
import { PermissionCard } from "./permission-card";

const NONE: readonly PermissionRequest[] = [];

export function Permissions() {
  const store = useStore();
  const pending = useMemo(() => part(store, (view) => view.pending, NONE), [store]).value;
  const region = useRef<HTMLElement>(null);
  const words = useAnnounced(pending);
  const lead = () => region.current?.querySelector<HTMLElement>("[data-first]")?.focus();
  useShortcut(pending.length > 0 ? lead : null);
  useFocusBack(region, pending);
  return (
    <>
      <div class="visually-hidden" role="alert">{words}</div>
      {pending.length > 0 && (
        <section ref={region} class="permissions" role="region" aria-label="Permission">
          {pending.map((request, index) => (
            <PermissionCard key={request.requestId} request={request} first={index === 0} place={pending.length > 1 ? `${index + 1} of ${pending.length}` : ""} />
          ))}
        </section>
      )}
    </>
  );
}

/** What is said of questions that are new, each once. */
function useAnnounced(pending: readonly PermissionRequest[]): string {
  const known = useRef(new Set<string>());
  const [words, setWords] = useState("");
  useEffect(() => {
    const fresh = pending.filter((request) => !known.current.has(request.requestId));
    for (const request of fresh) known.current.add(request.requestId);
    if (fresh.length > 0) setWords(`${fresh.length === 1 ? "agentd asks" : plural(fresh.length, "question")}: ${fresh[0]!.title}. Alt+A leads there.`);
    else if (pending.length === 0) setWords("");
  }, [pending]);
  return words;
}

function useShortcut(lead: (() => void) | null): void {
  useEffect(() => {
    if (!lead) return;
    const press = (event: KeyboardEvent) => {
      // By place: with Alt the letter is another one on some keyboards.
      if (!event.altKey || event.ctrlKey || event.metaKey || event.shiftKey || event.code !== "KeyA") return;
      event.preventDefault();
      lead();
    };
    addEventListener("keydown", press);
    return () => removeEventListener("keydown", press);
  });
}

/** Who answered by keyboard goes on to the next question, or back to the prompt box. */
function useFocusBack(region: { readonly current: HTMLElement | null }, pending: readonly PermissionRequest[]): void {
  const inside = useRef(false);
  useEffect(() => {
    const note = () => {
      inside.current = region.current?.contains(document.activeElement) ?? false;
    };
    document.addEventListener("focusin", note);
    return () => document.removeEventListener("focusin", note);
  }, []);
  useEffect(() => {
    const lost = !document.activeElement || document.activeElement === document.body;
    if (!inside.current || !lost) return;
    const next = region.current?.querySelector<HTMLElement>("[data-first]") ?? document.querySelector<HTMLElement>("textarea.prompt");
    next?.focus();
  }, [pending]);
}
