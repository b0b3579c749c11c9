/** Markdown as it is said: `text` may grow, `final` says that it will not. */
import { useLayoutEffect, useRef } from "preact/hooks";
import { memo } from "../memo";
import { clean } from "./clean";
import { CodeBlock } from "./code";
import { morph } from "./morph";
import { parse, type Parsed, type Piece } from "./parse";

export function Markdown({ text, final }: { text: string; final: boolean }) {
  const parsed = useRef<Parsed | null>(null);
  parsed.current = parse(text, parsed.current, final);
  const { done, open } = parsed.current;
  return (
    <div class="markdown">
      {done.map((piece) => <Shown key={piece.at} piece={piece} />)}
      {open.map((piece) => <Shown key={piece.at} piece={piece} />)}
    </div>
  );
}

const Shown = memo(function Shown({ piece }: { piece: Piece }) {
  return piece.type === "html" ? <Html html={piece.html} /> : <CodeBlock {...piece} />;
});

function Html({ html }: { html: string }) {
  const place = useRef<HTMLDivElement>(null);
  useLayoutEffect(() => morph(place.current!, clean(html)), [html]);
  return <div class="piece" ref={place} />;
}
