/**
 * What becomes of drafts as sessions come into sight: what an earlier page had on its way is settled, and a session
 * that begins takes along what was written since its first prompt was sent.
 */
import { effect, untracked, type Signal } from "@preact/signals";
import type { Store } from "../model/store";
import { NEW, type Drafts, type Key, type Outgoing, type Said } from "./drafts";

export function follow(store: Store, drafts: Drafts, outgoing: Signal<Readonly<Record<Key, readonly Outgoing[]>>>): void {
  // What is added from here on is this page's own: the answer to its call tells what became of it.
  const left = { ...outgoing.peek() };
  let before: Key | undefined;
  let begun: Key | undefined;

  function settle(key: Key): void {
    const all = left[key];
    delete left[key];
    if (all) drafts.recover(key, all, saidIn(store));
  }

  effect(() => {
    const known = store.surroundings.value !== null;
    const now = store.session.value?.session.sessionId ?? NEW;
    untracked(() => {
      // The first session comes right after the surroundings: not between the two.
      if (known) queueMicrotask(() => {
        settle(store.session.peek()?.session.sessionId ?? NEW);
        settle(NEW);
      });
      if (before !== undefined && before !== now && (outgoing.peek()[NEW]?.length ?? 0) > 0) {
        if (before === NEW) drafts.move(NEW, (begun = now));
        // Its first prompt was refused, and the session is gone again.
        else if (now === NEW && before === begun) drafts.move(before, NEW);
      }
      before = now;
    });
  });
}

function saidIn(store: Store): Said {
  const view = store.session.peek();
  const entries = (view?.entries ?? []).flatMap((entry) => (entry.type === "user" ? [entry] : []));
  return {
    promptIds: [...(view?.queue ?? []).map((one) => one.promptId), ...entries.flatMap((entry) => entry.promptId ?? [])],
    prompts: entries.map((entry) => entry.content),
  };
}
