import { useCallback, useRef, useState } from "preact/hooks";
import { useStore } from "../model/store";
import { Icon } from "../ui/icon";
import { Popup } from "../ui/popup";
import { SessionList } from "./session-list";

/** The shown session's title; opened, all sessions. */
export function SessionPicker() {
  const store = useStore();
  const button = useRef<HTMLButtonElement>(null);
  const [open, setOpen] = useState(false);
  const close = useCallback(() => setOpen(false), []);
  const view = store.session.value;
  const title = view ? view.session.title || "New session" : "New session";
  return (
    <>
      <button
        ref={button} type="button" role="combobox" class="select session" aria-label="Session" title={title} aria-haspopup="dialog" aria-expanded={open}
        aria-controls={open ? "session-list" : undefined}
        onClick={() => setOpen(!open)}
        onKeyDown={(event) => {
          if (event.key !== "ArrowDown" && event.key !== "ArrowUp") return;
          event.preventDefault();
          setOpen(true);
        }}
      >
        {view?.session.parent && <Icon name="type-hierarchy-sub" />}
        <span class="select-text">{title}</span>
        <Icon name="chevron-down" class="select-arrow" />
      </button>
      {open && (
        <Popup anchor={button} onClose={close} label="Sessions" class="sessions-popup">
          <SessionList onDone={() => {
            button.current?.focus();
            close();
          }} />
        </Popup>
      )}
    </>
  );
}
