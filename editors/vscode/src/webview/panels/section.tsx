import type { ComponentChildren } from "preact";
import { useId } from "preact/hooks";
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
  const { memory } = useStore();
  const open = memory.kept(`panel.${name}`, initially);
  const body = useId();
  return (
    <section class="panel" role="region" aria-label={name}>
      <div class="panel-head">
        <button type="button" class="panel-toggle" aria-expanded={open.value} aria-controls={body} onClick={() => {
          open.value = !open.value;
        }}>
          <Icon name={open.value ? "chevron-down" : "chevron-right"} />
          <span class="panel-title">{title}</span>
          {summary !== undefined && <span class="panel-summary muted">{summary}</span>}
        </button>
        {actions}
      </div>
      <div id={body} class="panel-body" hidden={!open.value}>{open.value && children}</div>
    </section>
  );
}
