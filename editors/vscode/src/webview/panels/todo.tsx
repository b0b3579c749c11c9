import { part, useStore } from "../model/store";
import type { TodoItem } from "../../shared/wire";
import { Icon } from "../ui/icon";
import { useMemo } from "preact/hooks";
import { Section } from "./section";

const STATES: Record<TodoItem["status"], { icon: string; words: string }> = {
  completed: { icon: "pass-filled", words: "Done" },
  in_progress: { icon: "circle-large-filled", words: "In progress" },
  pending: { icon: "circle-large-outline", words: "To do" },
};

const NONE: readonly TodoItem[] = [];

/** The agent's to-do list, with how far it is; folded it says what is being done. */
export function TodoPanel() {
  const store = useStore();
  const items = useMemo(() => part(store, (view) => view.todo, NONE), [store]).value;
  const busy = useMemo(() => part(store, (view) => view.state !== "idle", false), [store]).value;
  const done = items.filter((item) => item.status === "completed").length;
  // A list that is done says nothing any more once its run is over.
  if (items.length === 0 || (done === items.length && !busy)) return null;
  const now = items.find((item) => item.status === "in_progress");
  return (
    <Section name="To-do" title={now ? now.text : "To-do"} summary={`${done}/${items.length}`} actions={
      <span class="progress" role="progressbar" aria-label="To-do items done" aria-valuenow={done} aria-valuemin={0} aria-valuemax={items.length}>
        <span style={{ width: `${(100 * done) / items.length}%` }} />
      </span>
    }>
      <ol class="plain-list todo">
        {items.map(({ id, text, status }) => {
          const { icon, words } = STATES[status];
          return (
            <li key={id} class={status}>
              {status === "in_progress" && busy ? <Icon name="loading" spin /> : <Icon name={icon} />}
              <span class="visually-hidden">{words}: </span>
              <span class="todo-text">{text}</span>
            </li>
          );
        })}
      </ol>
    </Section>
  );
}
