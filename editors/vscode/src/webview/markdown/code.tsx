/** A block of code with its colours and buttons. While it grows, colours follow in steps and not with every word. */
import { useLayoutEffect, useRef } from "preact/hooks";
import { clean } from "./clean";
import { highlight } from "./highlight";

interface Props { language: string; code: string; closed: boolean }

export function CodeBlock({ language, code, closed }: Props) {
  const place = useRef<HTMLElement>(null);
  const coloured = useRef(0);
  useLayoutEffect(() => {
    const element = place.current!;
    // Colouring all of it costs time in its length: done anew whenever it has grown by a third, it stays linear.
    const whole = code.lastIndexOf("\n") + 1;
    const due = closed || whole < coloured.current || whole > coloured.current * 1.3 + 40;
    if (due) {
      const upTo = closed ? code.length : whole;
      const html = highlight(code.slice(0, upTo), language);
      element.replaceChildren(html === null ? code.slice(0, upTo) : clean(html), code.slice(upTo));
      coloured.current = upTo;
      return;
    }
    const tail = element.lastChild;
    if (tail instanceof Text) tail.data = code.slice(coloured.current);
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
