import { useId, useRef, useState } from "preact/hooks";
import type { PermissionOption, PermissionRequest } from "../../shared/wire";
import { useStore } from "../model/store";
import { Icon } from "../ui/icon";
import { isRejection, scopeOf, sorted } from "./options";
import { Subject } from "./subject";

const ASKS: Record<string, { words: string; icon: string }> = {
  command: { words: "Run this command?", icon: "terminal" },
  edit: { words: "Make this change?", icon: "edit" },
  read: { words: "Read this file?", icon: "file" },
  fetch: { words: "Fetch this address?", icon: "globe" },
  mcp: { words: "Use this tool?", icon: "plug" },
};

interface Props { request: PermissionRequest; first: boolean; place: string }

export function PermissionCard({ request, first, place }: Props) {
  const store = useStore();
  const heading = useId();
  const [answered, setAnswered] = useState<string | null>(null);
  const [telling, setTelling] = useState(false);
  const options = sorted(request.options);
  const rejection = options.find((option) => option.kind === "reject_once") ?? options.find(isRejection);
  const { words, icon } = ASKS[request.subject.type] ?? { words: "Allow this?", icon: "shield" };

  async function answer(option: PermissionOption, feedback = "") {
    if (answered !== null) return;
    setAnswered(option.optionId);
    const given = feedback.trim();
    const done = await store.attempt("permission", { requestId: request.requestId, optionId: option.optionId, ...(given ? { feedback: given } : {}) });
    // Not taken: it can be answered again.
    if (!done) setAnswered(null);
  }

  return (
    <article class="permission" aria-labelledby={heading} onKeyDown={(event) => {
      const typing = event.target instanceof HTMLTextAreaElement || event.target instanceof HTMLInputElement;
      const option = /^[1-9]$/.test(event.key) ? options[Number(event.key) - 1] : undefined;
      if (typing || !option || event.ctrlKey || event.metaKey || event.altKey) return;
      event.preventDefault();
      void answer(option);
    }}>
      <header class="permission-head">
        <Icon name={icon} class="attention" />
        <h2 id={heading}>{words}</h2>
        {request.child && <span class="badge" title="A sub-agent wants this">sub-agent</span>}
        {place && <span class="muted small">{place}</span>}
      </header>
      {/* What the subject says itself is not said twice; a sub-agent is named by the title alone. */}
      {request.title && (request.child || !(request.subject.type in ASKS)) && <p class="permission-title muted">{request.title}</p>}
      <div class="subject"><Subject subject={request.subject} /></div>
      <div class="options" role="group" aria-label="Answers">
        {options.map((option, index) => (
          <OptionButton key={option.optionId} option={option} number={index + 1} first={first && index === 0} chosen={answered === option.optionId} disabled={answered !== null}
            onPick={() => void answer(option)} />
        ))}
      </div>
      {rejection && (telling
        ? <Feedback onSend={(text) => void answer(rejection, text)} onCancel={() => setTelling(false)} disabled={answered !== null} />
        : <button type="button" class="link small feedback-open" disabled={answered !== null} onClick={() => setTelling(true)}>Reject and say what to do instead…</button>)}
    </article>
  );
}

interface OptionProps { option: PermissionOption; number: number; first: boolean; chosen: boolean; disabled: boolean; onPick(): void }

function OptionButton({ option, number, first, chosen, disabled, onPick }: OptionProps) {
  const main = option.kind === "allow_once";
  return (
    <button
      type="button" class={`option${main ? " main" : ""}`} disabled={disabled} onClick={onPick}
      {...(first ? { "data-first": "" } : {})}
    >
      {chosen ? <Icon name="loading" spin /> : <kbd aria-hidden="true" data-key={number} />}
      <span class="option-words">
        <span class="option-label">{option.label}</span>{" "}
        <span class="option-scope small">{scopeOf(option)}{option.rule && <>: <span class="rule">{option.rule}</span></>}</span>
      </span>
    </button>
  );
}

function Feedback({ onSend, onCancel, disabled }: { onSend(text: string): void; onCancel(): void; disabled: boolean }) {
  const [text, setText] = useState("");
  const focused = useRef(false);
  return (
    <div class="feedback">
      <textarea
        ref={(element) => {
          if (element && !focused.current) element.focus();
          focused.current = element !== null;
        }}
        rows={2} aria-label="What to do instead" placeholder="What to do instead" value={text} disabled={disabled}
        onInput={(event) => setText(event.currentTarget.value)}
        onKeyDown={(event) => {
          if (event.isComposing || event.keyCode === 229) return;
          if (event.key === "Enter" && !event.shiftKey) onSend(text);
          else if (event.key === "Escape") onCancel();
          else return;
          event.preventDefault();
          event.stopPropagation();
        }}
      />
      <span class="feedback-ways">
        <button type="button" class="button compact" disabled={disabled} onClick={() => onSend(text)}>Reject with this</button>
        <button type="button" class="button secondary compact" disabled={disabled} onClick={onCancel}>Cancel</button>
      </span>
    </div>
  );
}
