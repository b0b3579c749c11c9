import { useEffect, useId, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import type { Completion } from "../../shared/messages";
import { useStore } from "../model/store";
import { Backdrop } from "./backdrop";
import { Completer, type Suggestions } from "./completer";
import { useBox } from "./context";
import { attach, isEmpty } from "./draft";
import { step, type History } from "./history";
import { isBusy, whyNot } from "./readiness";
import { waysOf } from "./send-buttons";
import { SuggestionList } from "./suggestion-list";
import { insertAt, triggerAt } from "./trigger";

export function PromptBox({ onPaste }: { onPaste(event: ClipboardEvent): void }) {
  const store = useStore();
  const box = useBox();
  const area = useRef<HTMLTextAreaElement>(null);
  const list = useId();
  const [suggestions, setSuggestions] = useState<Suggestions | null>(null);
  const [active, setActive] = useState(0);
  const completer = useMemo(() => new Completer(
    (trigger, query) => store.call("complete", { trigger, query }),
    (next) => {
      setSuggestions((last) => {
        if (last?.place.query !== next?.place.query) setActive(0);
        return next;
      });
    },
  ), [store]);
  const history = useRef<History | null>(null);
  const { text } = box.draft.value;
  const sessionId = store.session.value?.session.sessionId;
  useEffect(() => completer.close(), [completer, sessionId]);
  useEffect(() => () => completer.close(), [completer]);
  useFocus(area);

  const look = () => {
    const element = area.current;
    if (!element) return;
    const { selectionStart, selectionEnd, value } = element;
    completer.at(selectionStart === selectionEnd ? triggerAt(value, selectionStart) : null);
  };
  // Also where the text was changed by a button: `@` of the menu.
  useLayoutEffect(() => {
    if (document.activeElement === area.current) look();
  }, [text]);

  function take(item: Completion, further = false) {
    if (!suggestions) return;
    const word = item.insert.trimEnd();
    if (further) {
      // A folder is looked into: its quotation mark stays open.
      const { text: next, caret } = insertAt(text, suggestions.place, `${word.replace(/\/?"?$/, "")}/`);
      return box.edit((draft) => ({ ...draft, text: next }), caret);
    }
    const { text: next, caret } = insertAt(text, suggestions.place, word);
    completer.dismiss();
    box.edit((draft) => {
      const changed = { ...draft, text: next };
      return item.attachment ? attach(changed, [{ ...item.attachment, ...(word ? { mention: word } : {}) }]) : changed;
    }, caret);
  }

  function send(alternative: boolean) {
    if (isEmpty(box.draft.peek()) || whyNot(store) !== null) return;
    const { first, second } = waysOf(store.surroundings.peek()?.whenRunning ?? "steer");
    completer.close();
    history.current = null;
    void box.send(!isBusy(store) ? "queue" : alternative ? second : first);
  }

  function recall(by: -1 | 1): boolean {
    const found = step(history.current ?? box.history.peek(), text, by);
    if (!found) return false;
    history.current = found.history;
    box.edit((draft) => ({ ...draft, text: found.text }), found.text.length);
    // An entry that ends in `@word` opens nothing by itself.
    completer.dismiss();
    return true;
  }

  function press(event: KeyboardEvent) {
    // 229: keys that an input method takes, in browsers that say so too late.
    if (event.isComposing || event.keyCode === 229) return;
    const handled = suggestions && suggest(event, suggestions) || plain(event);
    if (!handled) return;
    event.preventDefault();
    event.stopPropagation();
  }

  function suggest(event: KeyboardEvent, { items }: Suggestions): boolean {
    if (event.key === "Escape") {
      completer.dismiss();
      return true;
    }
    if (items.length === 0 || event.altKey || event.ctrlKey || event.metaKey || event.shiftKey) return false;
    const chosen = items[Math.min(active, items.length - 1)]!;
    switch (event.key) {
      case "ArrowDown": setActive((active + 1) % items.length); return true;
      case "ArrowUp": setActive((active - 1 + items.length) % items.length); return true;
      case "Tab": take(chosen, chosen.kind === "folder"); return true;
      case "Enter":
        // What is written out already is sent, not completed.
        if (text === chosen.insert.trim() && chosen.kind === "command") return false;
        take(chosen);
        return true;
      default: return false;
    }
  }

  function plain(event: KeyboardEvent): boolean {
    const bare = !event.altKey && !event.ctrlKey && !event.metaKey && !event.shiftKey;
    if (event.key === "Enter" && !event.shiftKey) {
      send(event.altKey);
      return true;
    }
    if (event.key === "Escape" && bare && text === "" && isBusy(store)) {
      void box.stop();
      return true;
    }
    if (bare && event.key === "ArrowUp") return recall(-1);
    if (bare && event.key === "ArrowDown") return recall(1);
    return false;
  }

  const shown = suggestions && (suggestions.items.length > 0 || suggestions.error !== undefined || !suggestions.loading);
  const at = suggestions ? Math.min(active, suggestions.items.length - 1) : -1;
  return (
    <>
      {suggestions && shown && <SuggestionList id={list} suggestions={suggestions} active={at} onHover={setActive} onPick={take} />}
      <div class="prompt-scroll">
        <div class="prompt-grow">
          <Backdrop draft={box.draft.value} commands={store.surroundings.value?.commands ?? []} />
          <textarea
            ref={area} class="prompt" rows={1} aria-label="Prompt" placeholder={placeholder(store)} value={text} spellcheck={false}
            aria-autocomplete="list" aria-haspopup="listbox" aria-controls={shown ? list : undefined}
            aria-activedescendant={shown && at >= 0 ? `${list}-${at}` : undefined}
            onInput={(event) => {
              const { value } = event.currentTarget;
              box.edit((draft) => ({ ...draft, text: value }));
              look();
            }}
            onKeyDown={press}
            onKeyUp={(event) => {
              if (event.key.startsWith("Arrow") && !shown || event.key === "Home" || event.key === "End") look();
            }}
            onClick={look}
            onBlur={() => completer.close()}
            onPaste={onPaste}
          />
        </div>
      </div>
    </>
  );
}

/** Gives the box the focus, and the caret its place, whenever that is asked for. */
function useFocus(area: { readonly current: HTMLTextAreaElement | null }): void {
  const box = useBox();
  const { count, caret } = box.focus.value;
  useLayoutEffect(() => {
    const element = area.current;
    if (count === 0 || !element) return;
    element.focus();
    const to = Math.min(caret ?? element.value.length, element.value.length);
    element.setSelectionRange(to, to);
  }, [count]);
}

function placeholder(store: Parameters<typeof isBusy>[0]): string {
  if (!isBusy(store)) return "Ask agentd. @ for files, / for commands";
  return (store.surroundings.value?.whenRunning ?? "steer") === "steer" ? "Tell the running prompt something" : "Write the next prompt";
}
