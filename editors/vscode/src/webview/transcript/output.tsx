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
    for (const line of lines(part.text)) rows.push({ line, channel: part.channel });
  }
  return rows;
}

/** `fromEnd`: what a command printed is read from its end, what a file holds from its beginning. */
export function Output({ parts, fromEnd }: { parts: readonly OutputPart[]; fromEnd: boolean }) {
  const [all, setAll] = useState(false);
  const place = useRef<HTMLPreElement>(null);
  const follows = useRef(fromEnd);
  const rows = useMemo(() => rowsOf(parts), [parts]);
  const limit = all ? MOST : SHOWN;
  const shown = rows.length <= limit ? rows : fromEnd ? rows.slice(-limit) : rows.slice(0, limit);
  const hidden = rows.length - shown.length;
  useLayoutEffect(() => {
    // The end tells how it went: it is what is seen first.
    if (follows.current) place.current!.scrollTop = place.current!.scrollHeight;
  });
  const more = hidden > 0 && (
    <button type="button" class="link" disabled={all} onClick={() => setAll(true)}>
      {all ? `${plural(hidden, "more line")} not shown` : `Show all ${count(rows.length)} lines`}
    </button>
  );
  return (
    <div class="output">
      {fromEnd && more}
      <pre ref={place} tabIndex={0} aria-label="Output" onScroll={({ currentTarget: box }) => {
        follows.current = fromEnd && box.scrollHeight - box.scrollTop - box.clientHeight < 4;
      }}>
        {shown.map(({ line, channel }, index) => (
          <span key={fromEnd ? index + hidden : index} class={`line ${channel}`}>
            {line.map((span, at) => (span.style ? <span key={at} class={span.style}>{span.text}</span> : span.text))}
            {"\n"}
          </span>
        ))}
      </pre>
      {!fromEnd && more}
    </div>
  );
}
