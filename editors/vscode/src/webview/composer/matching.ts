/** How a query is found in a label: its characters in order, as VS Code's own quick picks find them. */

export interface Match {
  /** Lower is better. */
  rank: number;
  /** Parts of the label to mark, `[from, to)`. */
  marks: readonly (readonly [number, number])[];
}

/** Null where the label does not hold the query. An empty query is in everything. */
export function match(label: string, query: string): Match | null {
  if (query === "") return { rank: 0, marks: [] };
  const low = label.toLowerCase();
  // A character whose lower case is longer would shift all marks.
  const text = low.length === label.length ? low : label;
  const wanted = query.toLowerCase();
  const name = text.lastIndexOf("/") + 1;
  for (const [rank, from] of [[0, name], [2, 0]] as const) {
    const at = text.indexOf(wanted, from);
    if (at >= 0) return { rank: rank + (atWordStart(text, at) ? 0 : 1), marks: [[at, at + wanted.length]] };
  }
  const marks = scattered(text, wanted);
  return marks && { rank: 4 + marks.length, marks };
}

function atWordStart(text: string, at: number): boolean {
  return at === 0 || /[\s/._:-]/.test(text[at - 1]!);
}

function scattered(text: string, wanted: string): [number, number][] | null {
  const marks: [number, number][] = [];
  let from = 0;
  for (const character of wanted) {
    if (character === " ") continue;
    const at = text.indexOf(character, from);
    if (at < 0) return null;
    const last = marks.at(-1);
    if (last && last[1] === at) last[1] = at + character.length;
    else marks.push([at, at + character.length]);
    from = at + character.length;
  }
  return marks;
}

/** Those that hold the query, best first; equal ones in the order they came in. */
export function filter<T>(items: readonly T[], query: string, label: (item: T) => string): T[] {
  return items
    .map((item, index) => ({ item, index, found: match(label(item), query) }))
    .filter((one) => one.found)
    .sort((a, b) => a.found!.rank - b.found!.rank || a.index - b.index)
    .map((one) => one.item);
}
