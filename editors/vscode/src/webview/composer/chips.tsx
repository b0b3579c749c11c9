import { useRef } from "preact/hooks";
import { useStore } from "../model/store";
import { Icon } from "../ui/icon";
import { useBox } from "./context";
import { detach, present, type Chip } from "./draft";
import { imageSource } from "./images";
import { isElsewhere } from "./pictures";

/** What goes along with the text, each to be removed by its button, Delete or Backspace. */
export function Chips() {
  const box = useBox();
  const list = useRef<HTMLUListElement>(null);
  const chips = present(box.draft.value);
  if (chips.length === 0) return null;

  function remove(chip: Chip, at: number) {
    box.edit((draft) => detach(draft, chip));
    // The focus goes to the neighbour, and to the box where there is none.
    requestAnimationFrame(() => {
      const buttons = list.current?.querySelectorAll<HTMLButtonElement>(".attachment-remove") ?? [];
      if (buttons.length > 0) buttons[Math.min(at, buttons.length - 1)]?.focus();
      else box.askFocus();
    });
  }

  return (
    <ul ref={list} class="attachments" aria-label="Attachments">
      {chips.map((chip, at) => (
        <li key={`${chip.label}${at}`} class={`attachment${chip.block.type === "image" ? " attachment-image" : ""}`} title={titleOf(chip)} onKeyDown={(event) => {
          if (event.key === "Delete" || event.key === "Backspace") remove(chip, at);
        }}>
          <ChipFace chip={chip} />
          <button type="button" class="attachment-remove" aria-label={`Remove ${chip.label}`} onClick={() => remove(chip, at)}><Icon name="close" /></button>
        </li>
      ))}
    </ul>
  );
}

function ChipFace({ chip }: { chip: Chip }) {
  const store = useStore();
  const { block, label } = chip;
  if (block.type === "image") {
    const picture = isElsewhere(block) ? <span class="attachment-picture" /> : <img class="attachment-picture" src={imageSource(block)} alt="" />;
    return <>{picture}<span class="attachment-label">{label}</span></>;
  }
  if (block.type !== "resource") {
    const icon = block.type === "command" ? "terminal" : /problem/i.test(label) ? "warning" : "note";
    return <><Icon name={icon} /><span class="attachment-label">{label}</span></>;
  }
  const { uri, range } = block;
  const icon = range ? "list-selection" : label.endsWith("/") || uri.endsWith("/") ? "folder" : "file";
  return (
    <button type="button" class="attachment-open" aria-label={`Open ${label}`} onClick={() => void store.attempt("openFile", { uri, ...(range ? { line: range.start.line } : {}) })}>
      <Icon name={icon} /><span class="attachment-label">{label}</span>
    </button>
  );
}

function titleOf({ block, label }: Chip): string {
  if (block.type === "text") return block.text;
  if (block.type !== "resource") return label;
  try {
    return decodeURIComponent(block.uri.replace(/^file:\/\//, ""));
  } catch {
    return block.uri;
  }
}
