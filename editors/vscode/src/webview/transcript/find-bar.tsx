/** The search of the conversation: Ctrl+F, the next with Enter, the one before with Shift+Enter, Escape ends it. */
import type { RefObject } from "preact";
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import type { Entry } from "../model/view";
import { found, ranges } from "./find";
import { IconButton } from "./icon";

interface Props {
  box: RefObject<HTMLElement | null>;
  entries: readonly Entry[];
  /** Brings an entry into sight. */
  show(id: string): void;
}

export function FindBar({ box, entries, show }: Props) {
  const [open, setOpen] = useState(false);
  const [query, setQuery] = useState("");
  const [current, setCurrent] = useState<string | null>(null);
  const input = useRef<HTMLInputElement>(null);
  const hits = useMemo(() => (open ? found(entries, query) : []), [open, entries, query]);
  const at = current === null ? -1 : hits.indexOf(current);

  useEffect(() => {
    const press = (event: KeyboardEvent) => {
      if (!(event.ctrlKey || event.metaKey) || event.altKey || event.key.toLowerCase() !== "f") return;
      event.preventDefault();
      setOpen(true);
      requestAnimationFrame(() => input.current?.select());
    };
    addEventListener("keydown", press);
    return () => removeEventListener("keydown", press);
  }, []);

  // Marked is what is drawn; rows come and go, so it is looked for with every drawing.
  useLayoutEffect(() => {
    mark(open ? box.current : null, query, current);
    return () => mark(null, "", null);
  });

  const go = (id: string | undefined) => {
    setCurrent(id ?? null);
    if (id !== undefined) show(id);
  };
  const step = (by: 1 | -1) => {
    if (hits.length === 0) return;
    // The first search is for the last place: that is where the user is.
    go(at < 0 ? hits.at(-1) : hits[(at + by + hits.length) % hits.length]);
  };
  const close = () => {
    setOpen(false);
    box.current?.focus();
  };
  if (!open) return null;
  return (
    <div class="find" role="search">
      <input ref={input} type="text" value={query} placeholder="Find in conversation" aria-label="Find in conversation" spellcheck={false}
        onInput={({ currentTarget: { value } }) => {
          setQuery(value);
          go(found(entries, value).at(-1));
        }}
        onKeyDown={(event) => {
          if (event.key === "Enter") step(event.shiftKey ? -1 : 1);
          else if (event.key === "Escape") close();
          else return;
          event.preventDefault();
          event.stopPropagation();
        }} />
      <span class="find-count" role="status">{query.trim() === "" ? "" : hits.length === 0 ? "None" : `${at + 1} of ${hits.length}`}</span>
      <IconButton name="arrow-up" label="Previous" onClick={() => step(-1)} />
      <IconButton name="arrow-down" label="Next" onClick={() => step(1)} />
      <IconButton name="close" label="Close search" onClick={close} />
    </div>
  );
}

function mark(root: Element | null, query: string, current: string | null): void {
  // Browsers before 2024 mark nothing; the search leads to the place all the same.
  if (!("highlights" in CSS)) return;
  const all = root ? ranges(root, query) : [];
  const here = all.filter((range) => current !== null && range.startContainer.parentElement?.closest(".row")?.getAttribute("data-key") === current);
  CSS.highlights.set("found", new Highlight(...all));
  CSS.highlights.set("found-here", new Highlight(...here));
}
