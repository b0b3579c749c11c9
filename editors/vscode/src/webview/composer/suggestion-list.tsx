import { useLayoutEffect, useRef } from "preact/hooks";
import type { Completion } from "../../shared/messages";
import { Icon } from "../ui/icon";
import type { Suggestions } from "./completer";
import { marksIn } from "./matching";

const ICONS: Record<Completion["kind"], string> = { file: "file", folder: "folder", selection: "list-selection", diagnostics: "warning", command: "terminal" };

interface Props { id: string; suggestions: Suggestions; active: number; onHover(index: number): void; onPick(item: Completion): void }

/** What can take the place of the word at the caret. The focus stays in the box. */
export function SuggestionList({ id, suggestions, active, onHover, onPick }: Props) {
  const list = useRef<HTMLDivElement>(null);
  const { items, loading, error, place } = suggestions;
  useLayoutEffect(() => list.current?.querySelector(".active")?.scrollIntoView({ block: "nearest" }), [active, items]);
  const word = place.trigger === "/" ? "command" : "file";
  return (
    <div class="suggestions">
      <div ref={list} id={id} class="choices" role="listbox" aria-label={place.trigger === "/" ? "Commands" : "Files and more"} aria-busy={loading}>
        {items.map((item, index) => (
          <div
            key={`${item.kind}:${item.label}`} id={`${id}-${index}`} role="option" aria-selected={index === active} class={`choice${index === active ? " active" : ""}`}
            onMouseMove={index === active ? undefined : () => onHover(index)}
            onPointerDown={(event) => event.preventDefault()}
            onClick={() => onPick(item)}
          >
            <Icon name={ICONS[item.kind]} />
            <span class="choice-words in-line">
              <Label text={item.label} query={place.query} />
              {item.detail && <span class="muted small ellipsis">{item.detail}</span>}
            </span>
          </div>
        ))}
      </div>
      {items.length === 0 && <p class="choices-empty muted" role="status">{error ?? (loading ? "Looking…" : `No ${word} has “${place.query}” in its name.`)}</p>}
    </div>
  );
}

/** The label with what was found in it marked. */
function Label({ text, query }: { text: string; query: string }) {
  const marks = marksIn(text, query);
  const parts = [];
  let from = 0;
  for (const [start, end] of marks) {
    parts.push(text.slice(from, start), <b class="found">{text.slice(start, end)}</b>);
    from = end;
  }
  return <span class="choice-label">{parts}{text.slice(from)}</span>;
}
