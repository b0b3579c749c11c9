/**
 * What a terminal would show of a command's output: colours and weights as classes (the theme has the colours),
 * lines that were written over, and nothing else of what control sequences can do.
 */
export interface Span { text: string; style: string }
export type Line = readonly Span[];

interface Pen { fg: string; bg: string; bold: boolean; dim: boolean; italic: boolean; underline: boolean; inverse: boolean }
const PLAIN: Pen = { fg: "", bg: "", bold: false, dim: false, italic: false, underline: false, inverse: false };
const COLOURS = ["black", "red", "green", "yellow", "blue", "magenta", "cyan", "white"];

// CSI … letter; OSC … BEL or ST; other escapes of two characters; then the controls that move.
const CONTROL = /\x1b\[([0-9;:?<=>]*)[ -/]*([@-~])|\x1b[\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\)?|\x1b[ -/]*[0-~]?|\r\n|[\r\n\b]|[\x00-\x08\x0b-\x1f\x7f]/g;

/** The lines of `text`; each is new, so what has not changed is known by being equal only. */
export function lines(text: string): Line[] {
  const done: Line[] = [];
  let line: Span[] = [];
  let column = 0;
  let pen = PLAIN;

  function put(chunk: string): void {
    if (chunk === "") return;
    const style = classes(pen);
    if (column >= width(line)) {
      const last = line.at(-1);
      if (last && last.style === style) line[line.length - 1] = { text: last.text + chunk, style };
      else line.push({ text: chunk, style });
    } else line = [...cut(line, 0, column), { text: chunk, style }, ...cut(line, column + chunk.length, Infinity)];
    column += chunk.length;
  }

  let at = 0;
  for (const match of text.matchAll(CONTROL)) {
    put(text.slice(at, match.index));
    at = match.index + match[0].length;
    const [all, parameters = "", final] = match;
    if (all === "\n" || all === "\r\n") {
      done.push(line);
      line = [];
      column = 0;
    } else if (all === "\r") column = 0;
    else if (all === "\b") column = Math.max(0, column - 1);
    else if (final === "m") pen = drawn(pen, parameters);
    else if (final === "K") line = parameters === "1" ? [] : parameters === "2" ? [] : cut(line, 0, column);
  }
  put(text.slice(at));
  if (line.length > 0 || done.length === 0) done.push(line);
  return done;
}

function width(line: readonly Span[]): number {
  return line.reduce((sum, span) => sum + span.text.length, 0);
}

function cut(line: readonly Span[], from: number, to: number): Span[] {
  const kept: Span[] = [];
  let start = 0;
  for (const span of line) {
    const text = span.text.slice(Math.max(0, from - start), Math.max(0, to - start));
    if (text !== "") kept.push({ text, style: span.style });
    start += span.text.length;
  }
  return kept;
}

function classes(pen: Pen): string {
  if (pen === PLAIN) return "";
  const [fg, bg] = pen.inverse ? [pen.bg || "back", pen.fg || "fore"] : [pen.fg, pen.bg];
  return [
    fg && `ansi-${fg}`, bg && `ansi-on-${bg}`, pen.bold && "ansi-bold", pen.dim && "ansi-dim", pen.italic && "ansi-italic",
    pen.underline && "ansi-underline",
  ].filter(Boolean).join(" ");
}

function drawn(before: Pen, parameters: string): Pen {
  let pen = { ...before };
  const codes = parameters.split(/[;:]/).map((code) => Number(code || 0));
  for (let at = 0; at < codes.length; at++) {
    const code = codes[at]!;
    if (code === 0) pen = { ...PLAIN };
    else if (code === 1) pen.bold = true;
    else if (code === 2) pen.dim = true;
    else if (code === 3) pen.italic = true;
    else if (code === 4) pen.underline = true;
    else if (code === 7) pen.inverse = true;
    else if (code === 22) pen.bold = pen.dim = false;
    else if (code === 23) pen.italic = false;
    else if (code === 24) pen.underline = false;
    else if (code === 27) pen.inverse = false;
    else if (code >= 30 && code <= 37) pen.fg = COLOURS[code - 30]!;
    else if (code >= 90 && code <= 97) pen.fg = `bright-${COLOURS[code - 90]!}`;
    else if (code >= 40 && code <= 47) pen.bg = COLOURS[code - 40]!;
    else if (code >= 100 && code <= 107) pen.bg = `bright-${COLOURS[code - 100]!}`;
    else if (code === 39) pen.fg = "";
    else if (code === 49) pen.bg = "";
    else if (code === 38 || code === 48) {
      const colour = codes[at + 1] === 5 ? nearestOf256(codes[at + 2] ?? 0) : nearest(codes[at + 2] ?? 0, codes[at + 3] ?? 0, codes[at + 4] ?? 0);
      if (code === 38) pen.fg = colour;
      else pen.bg = colour;
      at += codes[at + 1] === 5 ? 2 : 4;
    }
  }
  return Object.values(pen).some(Boolean) ? pen : PLAIN;
}

/** Colours by number or by their parts become the theme's nearest: only those are known to be readable on it. */
function nearestOf256(code: number): string {
  if (code < 16) return `${code > 7 ? "bright-" : ""}${COLOURS[code % 8]!}`;
  if (code >= 232) return nearest(...([8 + (code - 232) * 10, 8 + (code - 232) * 10, 8 + (code - 232) * 10] as const));
  const step = (part: number) => (part === 0 ? 0 : 55 + part * 40);
  return nearest(step(Math.floor((code - 16) / 36)), step(Math.floor((code - 16) / 6) % 6), step((code - 16) % 6));
}

function nearest(red: number, green: number, blue: number): string {
  const most = Math.max(red, green, blue);
  const least = Math.min(red, green, blue);
  if (most - least < 40) return most < 64 ? "black" : most < 140 ? "bright-black" : most < 210 ? "white" : "bright-white";
  const middle = (most + least) / 2;
  const index = (red > middle ? 1 : 0) + (green > middle ? 2 : 0) + (blue > middle ? 4 : 0);
  return `${most > 200 ? "bright-" : ""}${COLOURS[index]!}`;
}
