import { boxOf } from "../composer/box";
import { useStore } from "../model/store";
import { Icon } from "../ui/icon";

const EXAMPLES = [
  { icon: "search", title: "Understand", text: "Explain how this project is built and where to start reading." },
  { icon: "bug", title: "Fix", text: "Find out why a test fails and fix it." },
  { icon: "beaker", title: "Test", text: "Write tests for the code that I have selected." },
] as const;

/** What can be done here. An example goes into the box, to be changed before it is sent. */
export function Empty() {
  const store = useStore();
  const folder = store.surroundings.value?.folders.find((one) => one.uri === store.surroundings.value?.folder);
  const box = boxOf(store);
  return (
    <section class="screen empty" aria-label="What agentd can do">
      <span class="screen-icon mark-icon"><Mark /></span>
      <h2>What shall we do{folder ? <> in <span class="folder-name">{folder.name}</span></> : null}?</h2>
      <ul class="plain-list examples">
        {EXAMPLES.map(({ icon, title, text }) => (
          <li key={title}>
            <button type="button" class="example" onClick={() => {
              box.edit((draft) => ({ ...draft, text }), text.length);
            }}>
              <Icon name={icon} />
              <span><b>{title}</b><span class="muted">{text}</span></span>
            </button>
          </li>
        ))}
      </ul>
      <p class="hints muted small">
        <span><kbd>@</kbd> adds files, the selection or problems</span>
        <span><kbd>/</kbd> runs a command</span>
        <span><kbd>↑</kbd> brings back the last prompt</span>
        <span><kbd>Shift</kbd> held, files of the explorer can be dropped here</span>
      </p>
    </section>
  );
}

/** The extension's mark, in the colour of the text. */
function Mark() {
  return (
    <svg viewBox="0 0 24 24" aria-hidden="true" fill="none" stroke="currentColor" stroke-width="1.7" stroke-linecap="round" stroke-linejoin="round">
      <circle cx="12" cy="12" r="9" />
      <path d="M8 12l3 3 5-6" />
    </svg>
  );
}
