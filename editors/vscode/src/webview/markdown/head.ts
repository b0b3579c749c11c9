/**
 * Of a text that is very long the end is shown. What of the beginning still counts there: a fence that is open, and
 * the definitions of links.
 */
import { referencesIn, type References } from "./parse";

export interface Head {
  /** Where the part that is shown begins. */
  from: number;
  /** The line that opens the fence in which it begins; else empty. */
  fence: string;
  references: References;
}

/** A fence, or the definition of a link, at the beginning of a line. */
const LINE = /^ {0,3}(?:(`{3,}|~{3,})([^\n]*)|\[[^\]\n]+\]:[^\n]*)\n/gm;

/** Reads on with each step, so that what a text costs is linear in its length. */
export class HeadReader {
  private read = "";
  private fence: { marker: string; line: string } | null = null;
  private definitions: string[] = [];
  private last: Head | null = null;

  /** The head of a text that grows, for an end that begins about `at`. */
  at(text: string, at: number): Head {
    if (!text.startsWith(this.read) || at < this.read.length) {
      this.read = "";
      this.fence = this.last = null;
      this.definitions = [];
    }
    if (this.last && this.asked === at) return this.last;
    const from = boundary(text, at);
    this.readTo(text, from);
    this.asked = at;
    return (this.last = { from, fence: this.fence?.line ?? "", references: referencesIn(this.definitions.join("")) });
  }

  private asked = -1;

  private readTo(text: string, from: number): void {
    LINE.lastIndex = 0;
    const next = text.slice(this.read.length, from);
    for (let found = LINE.exec(next); found; found = LINE.exec(next)) this.take(found[0], found[1], found[2] ?? "");
    this.read = text.slice(0, from);
  }

  private take(line: string, marker: string | undefined, rest: string): void {
    if (this.fence) {
      const { marker: open } = this.fence;
      if (marker?.startsWith(open) && rest.trim() === "") this.fence = null;
    } else if (marker === undefined) this.definitions.push(line);
    else if (marker[0] === "~" || !rest.includes("`")) this.fence = { marker, line };
  }
}

/** So far behind is looked for a good place. */
const NEAR = 2_000;

/** The first block behind `at`, else the first line, where there is one near. */
function boundary(text: string, at: number): number {
  const near = text.slice(at, at + NEAR);
  const block = /\n[ \t]*\n(?=[^\s])/.exec(near);
  if (block) return at + block.index + block[0].length;
  const line = near.indexOf("\n");
  return line >= 0 ? at + line + 1 : at;
}
