/** What a command printed: colours, both channels in the order they came, and no more of it in the page than helps. */
import { useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import type { OutputPart } from "../model/view";
import { lines, type Line } from "./ansi";
import { count, plural } from "./words";

const SHOWN = 60;
const MOST = 5_000;

interface Row { line: Line; channel: string }

function rowsOf(parts: readonly OutputPart[]): Row[] {
  const rows: Row[] = [];
  for (const part of parts) {
    if (part.missed > 0) rows.push({ line: [{ text: `… ${count(part.missed)} characters were not shown live …`, style: "" }], channel: "missed" });
    const made = lines(part.text);
    // The end of a part with its line whole is no empty line of its own.
    if (made.length > 1 && made.at(-1)!.length === 0) made.pop();
    for (const line of made) rows.push({ line, channel: part.channel });
  }
  return rows;
}

export function Output({ parts, live }: { parts: readonly OutputPart[]; live: boolean }) {
  const [all, setAll] = useState(false);
  const place = useRef<HTMLPreElement>(null);
  const follows = useRef(true);
  const rows = useMemo(() => rowsOf(parts), [parts]);
  const limit = all ? MOST : SHOWN;
  const shown = rows.length > limit ? rows.slice(-limit) : rows;
  const hidden = rows.length - shown.length;
  useLayoutEffect(() => {
    if (live && follows.current) place.current!.scrollTop = place.current!.scrollHeight;
  });
  return (
    <div class="output">
      {hidden > 0 && (
        <button type="button" class="link" disabled={all} onClick={() => setAll(true)}>
          {all ? `${plural(hidden, "line")} before are not shown` : `Show all ${count(rows.length)} lines`}
        </button>
      )}
      <pre ref={place} tabIndex={0} aria-label="Output" onScroll={({ currentTarget: box }) => {
        follows.current = box.scrollHeight - box.scrollTop - box.clientHeight < 4;
      }}>
        {shown.map(({ line, channel }, index) => (
          <span key={index + hidden} class={`line ${channel}`}>
            {line.map((span, at) => (span.style ? <span key={at} class={span.style}>{span.text}</span> : span.text))}
            {"\n"}
          </span>
        ))}
      </pre>
    </div>
  );
}
