/** What a command printed: colours, both channels in the order they came, and no more of it in the page than helps. */
import { useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import type { OutputPart } from "../model/view";
import { lines, type Line } from "./ansi";
import { count, plural } from "./words";

const SHOWN = 60;
const MOST = 5_000;

/** So much of the end is looked at for that; a line has its colours from itself. */
const CHARACTERS = { some: 24_000, all: 1 << 20 };

interface Row { line: Line; channel: string }

function rowsOf(parts: readonly OutputPart[]): Row[] {
  const rows: Row[] = [];
  for (const part of parts) {
    if (part.missed > 0) rows.push({ line: [{ text: `… ${count(part.missed)} characters are not here …`, style: "" }], channel: "missed" });
    for (const line of lines(part.text)) rows.push({ line, channel: part.channel });
  }
  return rows;
}

/** The last `most` code units, from the beginning of a line. */
function end(parts: readonly OutputPart[], most: number): { parts: readonly OutputPart[]; cut: boolean } {
  let left = most;
  for (let at = parts.length - 1; at >= 0; at--) {
    const { text } = parts[at]!;
    if (text.length <= left) {
      left -= text.length;
      continue;
    }
    const from = text.indexOf("\n", text.length - left) + 1 || text.length - left;
    return { parts: [{ ...parts[at]!, text: text.slice(from), missed: 0 }, ...parts.slice(at + 1)], cut: true };
  }
  return { parts, cut: false };
}

/** `fromEnd`: what a command printed is read from its end, what a file holds from its beginning. */
export function Output({ parts, fromEnd }: { parts: readonly OutputPart[]; fromEnd: boolean }) {
  const [all, setAll] = useState(false);
  const place = useRef<HTMLPreElement>(null);
  const follows = useRef(fromEnd);
  const seen = useMemo(() => (fromEnd ? end(parts, all ? CHARACTERS.all : CHARACTERS.some) : { parts, cut: false }), [parts, fromEnd, all]);
  const rows = useMemo(() => rowsOf(seen.parts), [seen]);
  const limit = all ? MOST : SHOWN;
  const shown = rows.length <= limit ? rows : fromEnd ? rows.slice(-limit) : rows.slice(0, limit);
  const hidden = rows.length - shown.length;
  useLayoutEffect(() => {
    // The end tells how it went: it is what is seen first.
    if (follows.current) place.current!.scrollTop = place.current!.scrollHeight;
  });
  const more = (hidden > 0 || seen.cut) && (all
    ? <span class="muted small">There is more than is shown here</span>
    : <button type="button" class="link" onClick={() => setAll(true)}>{seen.cut ? "Show all" : `Show all ${plural(rows.length, "line")}`}</button>);
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
