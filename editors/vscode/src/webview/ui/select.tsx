/** A combobox that shows what is chosen and opens a list to choose from, with a filter where the list may be long. */
import type { ComponentChildren } from "preact";
import { useCallback, useId, useLayoutEffect, useRef, useState } from "preact/hooks";
import { filter } from "../composer/matching";
import { Icon } from "./icon";
import { Popup } from "./popup";

export interface Option {
  id: string;
  label: string;
  detail?: string;
  icon?: string;
  group?: string;
  /** Why it cannot be chosen. */
  disabled?: string;
  /** Something to do rather than something to choose. */
  action?: boolean;
}

interface Props {
  label: string;
  /** What the closed box shows. */
  text: string;
  icon?: string;
  title?: string;
  value: string | null;
  options: readonly Option[];
  onPick(id: string): void;
  filtered?: boolean;
  empty?: string;
  class?: string;
  align?: "start" | "end";
  footer?: ComponentChildren;
  disabled?: boolean;
}

export function Select(props: Props) {
  const { label, text, icon, title, class: more = "" } = props;
  const [open, setOpen] = useState(false);
  const button = useRef<HTMLButtonElement>(null);
  const list = useId();
  const close = useCallback(() => setOpen(false), []);
  return (
    <>
      <button
        ref={button} type="button" role="combobox" class={`select ${more}`} aria-label={label} title={title ?? `${label}: ${text}`}
        aria-haspopup="listbox" aria-expanded={open} aria-controls={open ? list : undefined} disabled={props.disabled}
        onClick={() => setOpen(!open)}
        onKeyDown={(event) => {
          if (event.key !== "ArrowDown" && event.key !== "ArrowUp") return;
          event.preventDefault();
          setOpen(true);
        }}
      >
        {icon && <Icon name={icon} />}
        <span class="select-text">{text}</span>
        <Icon name="chevron-down" class="select-arrow" />
      </button>
      {open && (
        <Popup anchor={button} onClose={close} role="presentation" class="select-popup" align={props.align ?? "start"}>
          <Choices {...props} id={list} onDone={() => {
            button.current?.focus();
            close();
          }} />
        </Popup>
      )}
    </>
  );
}

function Choices({ id, label, options, value, onPick, onDone, filtered, empty, footer }: Props & { id: string; onDone(): void }) {
  const [query, setQuery] = useState("");
  const shown = query === "" ? options : filter(options, query, (option) => `${option.group ?? ""} ${option.label}`);
  const [active, setActive] = useState(() => Math.max(0, options.findIndex((option) => option.id === value)));
  const at = Math.min(active, shown.length - 1);
  const keys = useRef<HTMLElement>(null);
  const list = useRef<HTMLDivElement>(null);
  useLayoutEffect(() => keys.current?.focus({ preventScroll: true }), []);
  useLayoutEffect(() => list.current?.querySelector(".active")?.scrollIntoView({ block: "nearest" }), [at, query]);

  function pick(option: Option | undefined) {
    if (!option || option.disabled !== undefined) return;
    onDone();
    onPick(option.id);
  }

  function press(event: KeyboardEvent) {
    const to = { ArrowDown: at + 1, ArrowUp: at - 1, PageDown: at + 8, PageUp: at - 8, Home: 0, End: shown.length - 1 }[event.key];
    if (to !== undefined && !(filtered && (event.key === "Home" || event.key === "End"))) {
      event.preventDefault();
      setActive(event.key.startsWith("Arrow") ? (to + shown.length) % shown.length : Math.max(0, Math.min(to, shown.length - 1)));
    } else if (event.key === "Enter" || (event.key === " " && !filtered)) {
      event.preventDefault();
      pick(shown[at]);
    } else if (!filtered && event.key.length === 1 && !event.ctrlKey && !event.metaKey) {
      const next = [...shown.keys()].map((_, step) => (at + 1 + step) % shown.length)
        .find((index) => shown[index]!.label.toLowerCase().startsWith(event.key.toLowerCase()));
      if (next !== undefined) setActive(next);
    }
  }

  const focusable = { "aria-activedescendant": shown[at] && `${id}-${at}`, onKeyDown: press };
  return (
    <>
      {filtered && (
        <div class="filter">
          <Icon name="search" />
          <input
            ref={keys as never} type="text" role="searchbox" aria-label="Filter" placeholder={`Find in ${label.toLowerCase()}s`} aria-controls={id}
            autocomplete="off" spellcheck={false} value={query} {...focusable}
            onInput={(event) => {
              setQuery(event.currentTarget.value);
              setActive(0);
            }}
          />
        </div>
      )}
      <div ref={(element) => {
        list.current = element;
        if (!filtered) keys.current = element;
      }} id={id} class="choices" role="listbox" aria-label={label} tabIndex={filtered ? -1 : 0} {...(filtered ? {} : focusable)}>
        {shown.map((option, index) => (
          <Choice key={option.id} option={option} id={`${id}-${index}`} chosen={option.id === value} active={index === at}
            heading={option.group !== shown[index - 1]?.group ? option.group : undefined}
            onHover={() => setActive(index)} onPick={() => pick(option)} />
        ))}
      </div>
      {shown.length === 0 && <p class="choices-empty muted">{query ? `Nothing has “${query}” in it.` : empty}</p>}
      {footer}
    </>
  );
}

interface ChoiceProps { option: Option; id: string; chosen: boolean; active: boolean; heading: string | undefined; onHover(): void; onPick(): void }

function Choice({ option, id, chosen, active, heading, onHover, onPick }: ChoiceProps) {
  return (
    <>
      {heading !== undefined && <div class="choice-group" role="presentation">{heading}</div>}
      <div
        id={id} role="option" class={`choice${active ? " active" : ""}`} aria-selected={chosen} aria-disabled={option.disabled !== undefined}
        onMouseMove={active ? undefined : onHover} onClick={onPick}
      >
        <Icon name={chosen ? "check" : option.icon ?? "blank"} />
        <span class="choice-words">
          <span class={option.action ? "link" : ""}>{option.label}</span>
          {(option.disabled || option.detail) && <span class="muted small">{option.disabled || option.detail}</span>}
        </span>
      </div>
    </>
  );
}
