/** The part of a whole diff that is about one file. */
import { parsePatch } from "diff";

const NAME = /^[ab]\//;

/**
 * The patch of one file in a diff of several; undefined where it is not there, as when it would be too long.
 *
 * @param path the file's absolute path, with `/`
 */
export function patchOf(diff: string, path: string): string | undefined {
  let found: { name: string; text: string } | undefined;
  for (const text of filesOf(diff)) {
    for (const given of namesOf(text)) {
      const name = given.replace(NAME, "");
      if (path.endsWith(`/${name}`) && name.length > (found?.name.length ?? 0)) found = { name, text };
    }
  }
  return found?.text;
}

function namesOf(patch: string): string[] {
  try {
    const [index] = parsePatch(patch);
    return index && index.hunks.length > 0 ? [index.newFileName, index.oldFileName].filter((each) => each !== undefined) : [];
  } catch {
    return [];
  }
}

/** Each file's lines from its `---` on. What a hunk holds may look like a head: its counts say where it ends. */
function filesOf(diff: string): string[] {
  const files: string[][] = [];
  let [old, now] = [0, 0];
  for (const line of diff.split("\n")) {
    if (old <= 0 && now <= 0) {
      if (line.startsWith("--- ")) files.push([]);
      const counts = /^@@ -\d+(?:,(\d+))? \+\d+(?:,(\d+))? @@/.exec(line);
      if (counts) [old, now] = [Number(counts[1] ?? 1), Number(counts[2] ?? 1)];
      else if (!line.startsWith("--- ") && !line.startsWith("+++ ") && !line.startsWith("\\")) continue;
    } else if (line.startsWith("-")) old--;
    else if (line.startsWith("+")) now--;
    else if (!line.startsWith("\\")) [old, now] = [old - 1, now - 1];
    files.at(-1)?.push(line);
  }
  return files.map((lines) => `${lines.join("\n")}\n`);
}
