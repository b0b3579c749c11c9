/** Markdown as it is said: `text` may grow, `final` says that it will not. */
import { useLayoutEffect, useRef, useState } from "preact/hooks";
import { memo } from "../memo";
import { clean } from "./clean";
import { CodeBlock } from "./code";
import { HeadReader } from "./head";
import { morph } from "./morph";
import { parse, type Parsed, type Piece, type References } from "./parse";

/** So much of a text is in the page, from its end: there it goes on, and there it concludes. More on request. */
const MOST = { some: 100_000, all: 1 << 20 };
/** A last block that is longer is not parsed again with every word. */
const LONG_BLOCK = 16_000;
/** So much of it may wait though another block may have begun. */
const SHORT = 2_000;
/** Finished pieces are drawn by so many, and looked at again by none. */
const GROUP = 50;

export function Markdown({ text, final }: { text: string; final: boolean }) {
  const [all, setAll] = useState(false);
  const limit = all ? MOST.all : MOST.some;
  const reader = useRef<HeadReader | null>(null);
  if (text.length <= limit) return <Whole text={text} final={final} />;
  // The beginning moves in steps, or all would be parsed anew with every word.
  const step = limit / 2;
  const { from, fence, references } = (reader.current ??= new HeadReader()).at(text, Math.ceil((text.length - limit) / step) * step);
  return (
    <>
      {all ? <p class="muted small">There is more before this than is shown here; it can be copied whole</p>
        : <button type="button" class="link" onClick={() => setAll(true)}>Show what is before this ({Math.round(from / 1000)} thousand characters)</button>}
      <Whole key={from} text={fence + text.slice(from)} final={final} known={references} />
    </>
  );
}

function Whole({ text, final, known }: { text: string; final: boolean; known?: References }) {
  const parsed = useRef<Parsed | null>(null);
  const groups = useRef<Piece[][]>([]);
  const waits = !final && mayWait(parsed.current, text);
  if (!waits) parsed.current = parse(text, parsed.current, final, known);
  const { done, open, source } = parsed.current!;
  return (
    <div class="markdown">
      {grouped(done, groups.current).map((group) => <Group key={group[0]!.at} pieces={group} />)}
      {open.map((piece) => <Shown key={piece.at} piece={piece} />)}
      {waits && text.length > source.length && <span class="unparsed">{text.slice(source.length)}</span>}
    </div>
  );
}

/**
 * What came behind a long block is shown as it is until the block has grown by a quarter: so its cost stays linear. A
 * fence is only added to.
 */
function mayWait(before: Parsed | null, text: string): boolean {
  if (before === null) return false;
  const [first, ...more] = before.open;
  const open = before.source.length - before.from;
  const added = text.length - before.source.length;
  if (open <= LONG_BLOCK || added >= open / 4 || !text.startsWith(before.source)) return false;
  if (first?.type === "code" && !first.closed && more.length === 0) return false;
  // Behind an empty line it may be another block by now.
  return added < SHORT || !/\n[ \t]*\n/.test(text.slice(before.source.length - 1));
}

/** The pieces in groups; full ones are the same arrays as before (`kept`). */
function grouped(done: readonly Piece[], kept: Piece[][]): readonly (readonly Piece[])[] {
  const full = Math.floor(done.length / GROUP);
  for (let at = 0; at < full; at++) if (kept[at]?.[0] !== done[at * GROUP]) kept[at] = done.slice(at * GROUP, (at + 1) * GROUP);
  kept.length = full;
  const rest = done.slice(full * GROUP);
  return rest.length > 0 ? [...kept, rest] : kept;
}

const Group = memo(function Group({ pieces }: { pieces: readonly Piece[] }) {
  return <>{pieces.map((piece) => <Shown key={piece.at} piece={piece} />)}</>;
});

const Shown = memo(function Shown({ piece }: { piece: Piece }) {
  return piece.type === "html" ? <Html html={piece.html} /> : <CodeBlock {...piece} />;
});

function Html({ html }: { html: string }) {
  const place = useRef<HTMLDivElement>(null);
  useLayoutEffect(() => morph(place.current!, clean(html)), [html]);
  return <div class="piece" ref={place} />;
}
