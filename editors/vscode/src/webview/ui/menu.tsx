/** A button that opens a menu of actions. */
import type { ComponentChildren } from "preact";
import { useCallback, useLayoutEffect, useRef, useState } from "preact/hooks";
import { Icon } from "./icon";
import { Popup } from "./popup";

export interface MenuItem {
  label: string;
  icon?: string;
  /** A second line, or what the key for it is. */
  detail?: string;
  key?: string;
  disabled?: boolean;
  run(): void;
}

interface Props {
  label: string;
  items: readonly MenuItem[];
  children: ComponentChildren;
  class?: string;
  title?: string;
  align?: "start" | "end";
}

export function MenuButton({ label, items, children, class: more = "", title = label, align = "start" }: Props) {
  const [open, setOpen] = useState(false);
  const button = useRef<HTMLButtonElement>(null);
  const close = useCallback(() => setOpen(false), []);
  return (
    <>
      <button
        ref={button} type="button" class={more} aria-label={label} title={title} aria-haspopup="menu" aria-expanded={open}
        onClick={() => setOpen(!open)}
        onKeyDown={(event) => {
          if (event.key !== "ArrowDown" && event.key !== "ArrowUp") return;
          event.preventDefault();
          setOpen(true);
        }}
      >
        {children}
      </button>
      {open && (
        <Popup anchor={button} onClose={close} align={align} role="presentation">
          <Menu label={label} items={items} onDone={() => {
            button.current?.focus();
            close();
          }} />
        </Popup>
      )}
    </>
  );
}

function Menu({ label, items, onDone }: { label: string; items: readonly MenuItem[]; onDone(): void }) {
  const list = useRef<HTMLDivElement>(null);
  const buttons = () => [...list.current!.querySelectorAll<HTMLButtonElement>("button:not(:disabled)")];
  useLayoutEffect(() => buttons()[0]?.focus({ preventScroll: true }), []);

  function move(event: KeyboardEvent) {
    const all = buttons();
    const at = all.indexOf(document.activeElement as HTMLButtonElement);
    const to = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: all.length - 1 }[event.key];
    if (event.key === "Tab") return onDone();
    if (to === undefined) return;
    event.preventDefault();
    all[(to + all.length) % all.length]?.focus();
  }

  return (
    <div ref={list} class="menu" role="menu" aria-label={label} onKeyDown={move}>
      {items.map((item) => (
        <button key={item.label} type="button" role="menuitem" class="menu-item" disabled={item.disabled} onClick={() => {
          onDone();
          item.run();
        }}>
          <Icon name={item.icon ?? "blank"} />
          <span class="menu-words">
            <span>{item.label}</span>
            {item.detail && <span class="muted small">{item.detail}</span>}
          </span>
          {item.key && <kbd>{item.key}</kbd>}
        </button>
      ))}
    </div>
  );
}
