/** A unified diff of one file as rows to show. */
export interface Row { kind: "context" | "added" | "removed" | "gap"; text: string; old?: number; new?: number }

export function rows(patch: string): Row[] {
  const all: Row[] = [];
  let before = 0;
  let after = 0;
  let inHunk = false;
  for (const line of patch.split("\n")) {
    const hunk = /^@@ -(\d+)(?:,\d+)? \+(\d+)(?:,\d+)? @@(.*)$/.exec(line);
    if (hunk) {
      if (inHunk) all.push({ kind: "gap", text: hunk[3]!.trim() });
      inHunk = true;
      [before, after] = [Number(hunk[1]), Number(hunk[2])];
    } else if (!inHunk || line.startsWith("\\")) continue;
    else if (line.startsWith("+")) all.push({ kind: "added", text: line.slice(1), new: after++ });
    else if (line.startsWith("-")) all.push({ kind: "removed", text: line.slice(1), old: before++ });
    else if (line.startsWith(" ")) all.push({ kind: "context", text: line.slice(1), old: before++, new: after++ });
  }
  return all;
}
