/** The prompts that were sent, for going through with Up and Down like a shell's. */

export interface History {
  /** Oldest first. */
  readonly entries: readonly string[];
  /** Which entry is shown; `entries.length`: none. */
  readonly at: number;
}

/** Without blanks, and without a repetition of what was sent just before. */
export function historyOf(texts: readonly string[]): History {
  const entries = texts.map((text) => text.trim()).filter((text, index, all) => text !== "" && text !== all[index - 1]);
  return { entries, at: entries.length };
}

/**
 * The entry before or behind the shown one, or null where the key is the text's own: the box holds something that
 * was not taken from the history as it is.
 */
export function step(history: History, shown: string, by: -1 | 1): { history: History; text: string } | null {
  const inside = history.at < history.entries.length && history.entries[history.at] === shown;
  const from = inside ? history.at : history.entries.length;
  if (!inside && (shown !== "" || by > 0)) return null;
  const at = from + by;
  if (at < 0) return null;
  return { history: { ...history, at }, text: history.entries[at] ?? "" };
}
