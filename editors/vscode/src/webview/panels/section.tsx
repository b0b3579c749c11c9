import type { ComponentChildren } from "preact";
import { useId, useState } from "preact/hooks";
import { useStore } from "../model/store";
import { Icon } from "../ui/icon";

interface Props {
  /** The region's name, and what its state is kept under. */
  name: string;
  title: ComponentChildren;
  summary?: ComponentChildren;
  actions?: ComponentChildren;
  children: ComponentChildren;
  /** Whether it is open until the user says otherwise. */
  open?: boolean;
}

/** A panel above the prompt box that folds to one line. */
export function Section({ name, title, summary, actions, children, open: initially = true }: Props) {
  const { memory, session } = useStore();
  const kept = memory.kept(`panel.${name}`, initially);
  const body = useId();
  // While a question stands open it has the room; what is unfolded then folds again with it.
  const question = session.value?.pending[0]?.requestId;
  const [unfolded, setUnfolded] = useState<string | undefined>(undefined);
  const open = question === undefined ? kept.value : unfolded === question;
  return (
    <section class="panel" role="region" aria-label={name}>
      <div class="panel-head">
        <button type="button" class="panel-toggle" aria-expanded={open} aria-controls={body} onClick={() => {
          if (question === undefined) kept.value = !open;
          else setUnfolded(open ? undefined : question);
        }}>
          <Icon name={open ? "chevron-down" : "chevron-right"} />
          <span class="panel-title">{title}</span>
          {summary !== undefined && <span class="panel-summary muted">{summary}</span>}
        </button>
        {actions}
      </div>
      <div id={body} class="panel-body" hidden={!open}>{open && children}</div>
    </section>
  );
}
