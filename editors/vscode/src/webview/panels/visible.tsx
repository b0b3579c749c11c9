/**
 * Text as it is, with what cannot be seen or turns other text spelled out (ESC as `\x1b`), the way the daemon does
 * in its own words: a question must not look other than it is.
 */
import type { ComponentChildren } from "preact";

const HIDDEN = /(?![\n\t\u200c\u200d])[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/u;

export function spelled(character: string): string {
  const code = character.codePointAt(0)!;
  if (code === 0x0d) return "\\r";
  if (code < 0x100) return `\\x${code.toString(16).padStart(2, "0")}`;
  return code < 0x10000 ? `\\u${code.toString(16).padStart(4, "0")}` : `\\U${code.toString(16).padStart(8, "0")}`;
}

/** The text in pieces; the spelled ones are marked. */
export function piecesOf(text: string): { text: string; odd: boolean }[] {
  if (!HIDDEN.test(text)) return [{ text, odd: false }];
  return text.split(new RegExp(`(${HIDDEN.source})`, "u")).filter((piece) => piece !== "")
    .map((piece) => (HIDDEN.test(piece) ? { text: spelled(piece), odd: true } : { text: piece, odd: false }));
}

export function Visible({ text }: { text: string }): ComponentChildren {
  return piecesOf(text).map((piece, index) => (piece.odd ? <span key={index} class="odd">{piece.text}</span> : piece.text));
}
