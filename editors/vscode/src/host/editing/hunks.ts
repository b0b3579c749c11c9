/** What differs between two texts, as runs of whole lines; and taking one of them back. */
import { diffArrays } from "diff";

/** Lines `oldStart` up to `oldStart + oldLines` of the old text became `newStart` … of the new one. From 0. */
export interface Hunk {
  oldStart: number;
  oldLines: number;
  newStart: number;
  newLines: number;
}

/** The most edits that are looked for; beyond, the whole text counts as one hunk. Keeps the editor responsive. */
const MAX_EDITS = 1000;

/** How many answers are kept: texts under review are asked about over and over while somebody types. */
const MAX_KNOWN = 12;

/** The same function, that remembers its last answers; what it gives is not to be changed. */
function remembering<A extends string[], R>(work: (...texts: A) => R): (...texts: A) => R {
  const known: { texts: A; result: R }[] = [];
  return (...texts) => {
    const at = known.findIndex((each) => each.texts.every((text, number) => text === texts[number]));
    const found = at < 0 ? { texts, result: work(...texts) } : (known.splice(at, 1)[0] as { texts: A; result: R });
    known.unshift(found);
    known.length = Math.min(known.length, MAX_KNOWN);
    return found.result;
  };
}

/** Lines with their ends, so that joining them gives the text again. */
export const linesOf: (text: string) => readonly string[] = remembering((text: string) =>
  text.match(/[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+$/g) ?? []);

/** The same text with the line ends that another one has mostly. */
export function withLineEnds(text: string, eol: "\n" | "\r\n"): string {
  return text.replace(/\r\n|\r|\n/g, eol);
}

/** The hunks between two texts, in order. */
export const hunksBetween: (before: string, after: string) => readonly Hunk[] = remembering((before: string, after: string) => {
  if (before === after) return [];
  const [old, now] = [linesOf(before), linesOf(after)];
  const shorter = Math.min(old.length, now.length);
  let [start, end] = [0, 0]; // where most changes are small, most of the work is saved
  while (start < shorter && old[start] === now[start]) start++;
  while (end < shorter - start && old[old.length - 1 - end] === now[now.length - 1 - end]) end++;
  const [oldMiddle, newMiddle] = [old.slice(start, old.length - end), now.slice(start, now.length - end)];
  const parts = diffArrays(oldMiddle, newMiddle, { maxEditLength: MAX_EDITS });
  if (!parts) return [{ oldStart: start, oldLines: oldMiddle.length, newStart: start, newLines: newMiddle.length }];
  const hunks: Hunk[] = [];
  let [oldLine, newLine, open] = [start, start, undefined as Hunk | undefined];
  for (const part of parts) {
    const count = part.value.length;
    if (!part.added && !part.removed) {
      open = undefined;
      oldLine += count;
      newLine += count;
      continue;
    }
    if (!open) hunks.push((open = { oldStart: oldLine, oldLines: 0, newStart: newLine, newLines: 0 }));
    if (part.removed) {
      open.oldLines += count;
      oldLine += count;
    } else {
      open.newLines += count;
      newLine += count;
    }
  }
  return hunks;
});

/** `before` with one hunk made as in `after`: what is left to review once the hunk is accepted. */
export function accepted(before: string, after: string, hunk: Hunk): string {
  const lines = [...linesOf(before)];
  lines.splice(hunk.oldStart, hunk.oldLines, ...linesOf(after).slice(hunk.newStart, hunk.newStart + hunk.newLines));
  return lines.join("");
}

/** The lines that a hunk took away, as they stood. */
export function removedText(before: string, hunk: Hunk): string {
  return linesOf(before).slice(hunk.oldStart, hunk.oldStart + hunk.oldLines).join("");
}
