/** How a query is found in a label: `fuzzysort` finds characters in order, as VS Code's quick picks do. */
import fuzzysort from "fuzzysort";

/** Those that hold the query, best first; with an empty query all, as they came. */
export function filter<T>(items: readonly T[], query: string, label: (item: T) => string): T[] {
  if (query === "") return [...items];
  return fuzzysort.go(query, items, { key: (item: T) => label(item) } as never).map((found) => (found as unknown as { obj: T }).obj);
}

/** The parts of the label to mark, `[from, to)`. */
export function marksIn(label: string, query: string): [number, number][] {
  const marks: [number, number][] = [];
  for (const at of [...(query === "" ? [] : fuzzysort.single(query, label)?.indexes ?? [])].sort((a, b) => a - b)) {
    const last = marks.at(-1);
    if (last?.[1] === at) last[1] = at + 1;
    else marks.push([at, at + 1]);
  }
  return marks;
}
