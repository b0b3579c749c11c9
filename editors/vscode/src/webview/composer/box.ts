/**
 * The prompt box apart from how it looks: the draft of the shown session, sending it, and what comes back. Nothing
 * that was written is lost: what is refused or taken back stands in the box again, with the reason.
 */
import { batch, computed, signal, type ReadonlySignal } from "@preact/signals";
import type { CallError } from "../../shared/messages";
import type { ContentBlock } from "../../shared/wire";
import type { Store } from "../model/store";
import { commandAsText, fromBlocks, toBlocks } from "./blocks";
import { attach, EMPTY, isEmpty, join, type Draft } from "./draft";
import { Drafts, NEW, type Key, type Kept, type Outgoing } from "./drafts";
import { follow } from "./following";
import { historyOf, type History } from "./history";
import { keepDrafts } from "./keeping";
import { browserPictures, type Pictures } from "./pictures";

export type WhenBusy = "queue" | "steer" | "interrupt";

/** Why a prompt is in the box again. */
export interface Trouble extends CallError {
  /** It began with `/name`: it can be sent as a text. */
  command: boolean;
}

export interface Box {
  readonly draft: ReadonlySignal<Draft>;
  readonly trouble: ReadonlySignal<Trouble | null>;
  /** Prompts of the shown session that are on their way. */
  readonly sending: ReadonlySignal<number>;
  readonly history: ReadonlySignal<History>;
  /** Counts up whenever the box should have the focus; the caret goes to `caret`, or to the end. */
  readonly focus: ReadonlySignal<{ count: number; caret?: number }>;
  edit(change: (draft: Draft) => Draft, caret?: number): void;
  send(whenBusy: WhenBusy, as?: "text"): Promise<void>;
  stop(keepQueue?: boolean): Promise<void>;
  /** Puts blocks back into the box, before what stands there. */
  giveBack(prompts: readonly (readonly ContentBlock[])[]): void;
  askFocus(caret?: number): void;
  complain(trouble: Omit<Trouble, "command"> | null): void;
  /** Resolves once the images of kept drafts are back. */
  readonly ready: Promise<void>;
}

const MOST_SENT = 100;

export function createBox(store: Store, pictures: Pictures = browserPictures(), newId: () => string = () => crypto.randomUUID()): Box {
  const kept = signal<Readonly<Record<Key, Kept>>>({});
  const outgoing = signal<Readonly<Record<Key, readonly Outgoing[]>>>({});
  const troubles = signal<Readonly<Record<Key, Trouble>>>({});
  const sent = store.memory.kept<readonly string[]>("sent", []);
  const focus = signal<{ count: number; caret?: number }>({ count: 0 });
  const drafts = new Drafts(kept, outgoing);
  const key = computed(() => store.session.value?.session.sessionId ?? NEW);
  const ready = keepDrafts(store.memory, kept, outgoing, pictures).then((lost) => {
    if (lost.length > 0) complain({ kind: "host", message: `Not kept while the view was away: ${lost.join(", ")}.` });
  });

  function complain(trouble: Omit<Trouble, "command"> | null, at: Key = key.peek(), command = false): void {
    const { [at]: _, ...others } = troubles.peek();
    troubles.value = trouble ? { ...others, [at]: { ...trouble, command } } : others;
  }

  const box: Box = {
    draft: computed(() => kept.value[key.value]?.draft ?? EMPTY),
    trouble: computed(() => troubles.value[key.value] ?? null),
    sending: computed(() => outgoing.value[key.value]?.length ?? 0),
    history: computed(() => historyOf([...sent.value, ...saidIn(store)])),
    focus, ready,
    edit(change, caret) {
      drafts.set(key.peek(), change(drafts.get(key.peek())));
      if (caret !== undefined) box.askFocus(caret);
    },
    async send(whenBusy, as) {
      await ready;
      const from = key.peek();
      if (isEmpty(drafts.get(from))) return;
      complain(null);
      const out = drafts.leave(from, newId);
      const blocks = toBlocks(out.draft);
      await deliver(from, out, as === "text" ? commandAsText(blocks) : blocks, whenBusy);
    },
    async stop(keepQueue = false) {
      const sessionId = store.session.peek()?.session.sessionId;
      if (sessionId === undefined) return;
      const answer = await store.attempt("cancel", { sessionId, ...(keepQueue ? { keepQueue } : {}) });
      if (answer) giveBack(answer.restored, sessionId);
    },
    giveBack: (prompts) => giveBack(prompts, key.peek()),
    askFocus(caret) {
      focus.value = { count: focus.peek().count + 1, ...(caret === undefined ? {} : { caret }) };
    },
    complain: (trouble) => complain(trouble),
  };

  async function deliver(from: Key, out: Outgoing, prompt: ContentBlock[], whenBusy: WhenBusy): Promise<void> {
    try {
      const { sessionId, restored } = await store.call("prompt", {
        ...(from === NEW ? {} : { sessionId: from }), promptId: out.promptId, prompt, whenBusy,
      });
      batch(() => {
        drafts.arrived(from, out);
        if (from === NEW) drafts.move(NEW, sessionId);
        if (restored) giveBack(restored, sessionId);
        if (out.draft.text.trim()) sent.value = [...sent.peek(), out.draft.text.trim().slice(0, 10_000)].slice(-MOST_SENT);
      });
    } catch (error) {
      // The session may have begun before its first prompt was refused; the words belong where the user looks.
      const box = from === NEW ? key.peek() : from;
      batch(() => {
        drafts.back(from, out, box);
        complain(asCallError(error), box, prompt[0]?.type === "command");
      });
    }
  }

  function giveBack(prompts: readonly (readonly ContentBlock[])[], to: Key): void {
    const returned = prompts.map(fromBlocks).reduce((all, one) => join(all, one), EMPTY);
    if (!isEmpty(returned)) drafts.set(to, join(returned, drafts.get(to)));
  }

  void ready.then(() => follow(store, drafts, outgoing));
  store.on("attach", (attachments) => {
    box.edit((draft) => attach(draft, attachments));
    box.askFocus();
  });
  store.on("draft", (text) => {
    box.edit((draft) => join(draft, { text, chips: [] }));
    box.askFocus();
  });
  store.on("focus", () => box.askFocus());
  return box;
}

/** The user's texts in the shown session, oldest first. */
function saidIn(store: Store): string[] {
  const entries = store.session.value?.entries ?? [];
  return entries.flatMap((entry) => (entry.type === "user" && entry.done ? [fromBlocks(entry.content).text] : []));
}

function asCallError(error: unknown): CallError {
  const { kind, message, hint } = error as Partial<CallError>;
  return { kind: kind ?? "host", message: message ?? String(error), ...(hint ? { hint } : {}) };
}

const boxes = new WeakMap<Store, Box>();

/** The one box of a store. */
export function boxOf(store: Store): Box {
  let box = boxes.get(store);
  if (!box) boxes.set(store, (box = createBox(store)));
  return box;
}
