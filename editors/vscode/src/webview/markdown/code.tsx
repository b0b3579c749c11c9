/** A block of code with its colours and buttons. While it grows, colours follow in steps and not with every word. */
import { useLayoutEffect, useRef } from "preact/hooks";
import { clean } from "./clean";
import { hasColours, highlight } from "./highlight";

interface Props { language: string; code: string; closed: boolean }

/** Lines that are laid out for themselves: what is added behind them costs nothing of them. */
const PART = 4_000;

/** What is in the page of code that grows: so much of it, so much of that with colours, and at its end this text. */
interface Drawn { language: string; length: number; coloured: number; tail: Text }

export function CodeBlock({ language, code, closed }: Props) {
  const place = useRef<HTMLElement>(null);
  const drawn = useRef<Drawn | null>(null);
  useLayoutEffect(() => {
    const element = place.current!;
    if (closed) {
      const html = highlight(code, language);
      element.replaceChildren(html === null ? code : clean(html));
      drawn.current = null;
      return;
    }
    let now = drawn.current;
    if (!now || now.language !== language || code.length < now.length) {
      element.replaceChildren();
      now = { language, length: 0, coloured: 0, tail: part(element) };
    }
    now = colour(element, now, code);
    append(element, now, code.slice(now.length));
    drawn.current = { ...now, length: code.length };
  }, [code, closed, language]);
  return (
    <div class="code">
      <div class="code-bar">
        <span class="code-language">{language}</span>
        <span class="code-actions">
          <button type="button" class="icon-button codicon codicon-insert" data-act="insert" title="Insert at cursor" aria-label="Insert at cursor" />
          <button type="button" class="icon-button codicon codicon-copy" data-act="copy" title="Copy" aria-label="Copy code" />
        </span>
      </div>
      <pre tabIndex={0}><code ref={place} /></pre>
    </div>
  );
}

/** Colours whole lines anew, where it is time: done once it has grown by a part of its length, that stays linear. */
function colour(element: HTMLElement, now: Drawn, code: string): Drawn {
  const cut = lastCut(code);
  const isDue = cut > now.coloured * (now.coloured < 4 * PART ? 1.3 : 2) + 40;
  if (!isDue || !hasColours(now.language, cut)) return now;
  element.replaceChildren();
  part(element).replaceWith(clean(highlight(code.slice(0, cut - 1), now.language)!));
  return { ...now, length: cut, coloured: cut, tail: next(element) };
}

function append(element: HTMLElement, now: Drawn, added: string): void {
  const cut = now.tail.length + added.length > PART ? lastCut(added) : 0;
  now.tail.appendData(cut > 0 ? added.slice(0, cut - 1) : added);
  if (cut === 0) return;
  now.tail = next(element);
  now.tail.appendData(added.slice(cut));
}

/** Behind the last line that is not empty: at the end of a part an empty one would not be seen. 0: there is none. */
function lastCut(code: string): number {
  let at = code.lastIndexOf("\n");
  while (at > 0 && code[at - 1] === "\n") at--;
  return at > 0 ? at + 1 : 0;
}

/** A new part at the end, on a line of its own. */
function next(element: HTMLElement): Text {
  const end = element.appendChild(document.createElement("span"));
  end.className = "line-end"; // part of the text, and not drawn: parts are below each other anyway
  end.append("\n");
  return part(element);
}

function part(element: HTMLElement): Text {
  const lines = document.createElement("span");
  lines.className = "lines";
  return element.appendChild(lines).appendChild(new Text(""));
}
