/** Which versions of agentd this extension works with. */

/** The oldest that works, and what "Install" installs. */
export const OLDEST = "0.1.0";
export const PACKAGE = "agentd-lsp";
/** What pip is asked for: no version with another protocol. */
export const REQUIREMENT = `${PACKAGE}>=${OLDEST},<1`;

/** The version in what `agentd --version` prints, or null. */
export function versionIn(text: string): string | null {
  return /^agentd (\d+(?:\.\d+)*\S*)\s*$/m.exec(text)?.[1] ?? null;
}

/** Whether a version is not older than another. What stands behind the numbers (`rc1`, `.dev0`) does not count. */
export function atLeast(version: string, oldest: string): boolean {
  const [mine, theirs] = [numbers(version), numbers(oldest)];
  for (let index = 0; index < Math.max(mine.length, theirs.length); index++) {
    const difference = (mine[index] ?? 0) - (theirs[index] ?? 0);
    if (difference !== 0) return difference > 0;
  }
  return true;
}

function numbers(version: string): number[] {
  return (/^\d+(?:\.\d+)*/.exec(version)?.[0] ?? "0").split(".").map(Number);
}
