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

/** Lines with their ends, so that joining them gives the text again. */
export function linesOf(text: string): string[] {
  return text.match(/[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+$/g) ?? [];
}

/** The same text with the line ends that another one has mostly. */
export function withLineEnds(text: string, eol: "\n" | "\r\n"): string {
  return text.replace(/\r\n|\r|\n/g, eol);
}

/** The hunks between two texts, in order. */
export function hunksBetween(before: string, after: string): Hunk[] {
  if (before === after) return [];
  const [old, now] = [linesOf(before), linesOf(after)];
  const parts = diffArrays(old, now, { maxEditLength: MAX_EDITS });
  if (!parts) return [{ oldStart: 0, oldLines: old.length, newStart: 0, newLines: now.length }];
  const hunks: Hunk[] = [];
  let [oldLine, newLine, open] = [0, 0, undefined as Hunk | undefined];
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
}

/** `before` with one hunk made as in `after`: what is left to review once the hunk is accepted. */
export function accepted(before: string, after: string, hunk: Hunk): string {
  const lines = linesOf(before);
  lines.splice(hunk.oldStart, hunk.oldLines, ...linesOf(after).slice(hunk.newStart, hunk.newStart + hunk.newLines));
  return lines.join("");
}

/** The lines that a hunk took away, as they stood. */
export function removedText(before: string, hunk: Hunk): string {
  return linesOf(before).slice(hunk.oldStart, hunk.oldStart + hunk.oldLines).join("");
}
