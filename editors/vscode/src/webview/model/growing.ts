/**
 * Text that comes in pieces, each with its offset. Pieces may be merged, repeated or (command output above the
 * daemon's rate) missing; offsets count UTF-16 code units, as JavaScript's strings do.
 */

export interface Grown {
  /** What is new of the piece; empty for a repetition. */
  added: string;
  /** So many code units before `added` were never told. */
  missed: number;
  length: number;
}

/** What the piece `delta` at `offset` adds to a text of which `length` code units were told. */
export function grow(length: number, offset: number, delta: string): Grown {
  const end = offset + delta.length;
  if (end <= length) return { added: "", missed: 0, length };
  if (offset <= length) return { added: delta.slice(length - offset), missed: 0, length: end };
  return { added: delta, missed: offset - length, length: end };
}
