/** Where in the text a completion is asked for, and what the text is once one was taken. */

export interface Trigger {
  trigger: "@" | "/";
  /** What was written behind the trigger, up to the caret. */
  query: string;
  /** The word that a completion takes the place of: from the trigger to the end of the word. */
  start: number;
  end: number;
}

/** The trigger that the caret stands behind; null where there is none. */
export function triggerAt(text: string, caret: number): Trigger | null {
  const before = text.slice(0, caret);
  const at = /(?:^|[\s([{"'`])@(?:"([^"\n]*)|([^\s"'`()[\]{}]*))$/.exec(before);
  if (at) {
    const quoted = at[1] !== undefined;
    const query = at[1] ?? at[2]!;
    const rest = (quoted ? /^[^"\n]*"?/ : /^[^\s"'`()[\]{},;]*/).exec(text.slice(caret))![0];
    return { trigger: "@", query, start: caret - query.length - (quoted ? 2 : 1), end: caret + (quoted && !rest.endsWith('"') ? 0 : rest.length) };
  }
  const command = /^\/([^\s/]*)$/.exec(before);
  if (command) {
    const rest = /^[^\s/]*/.exec(text.slice(caret))![0];
    return { trigger: "/", query: command[1]!, start: 0, end: caret + rest.length };
  }
  return null;
}

/** The text with the word at the trigger replaced, and where the caret stands then. */
export function insertAt(text: string, place: Trigger, completed: string): { text: string; caret: number } {
  const insert = completed.trimEnd();
  const rest = text.slice(place.end);
  // A folder is completed further, everything else ends here.
  const open = insert === "" || insert.endsWith("/");
  const gap = open || /^[\s,.;:!?)\]}]/.test(rest) ? "" : " ";
  const caret = place.start + insert.length + (gap || (!open && /^[ \t]/.test(rest)) ? 1 : 0);
  return { text: text.slice(0, place.start) + insert + gap + rest, caret };
}

/** The text with something put in the place of a selection, as a word of its own. */
export function insertWord(text: string, start: number, end: number, word: string): { text: string; caret: number } {
  const before = text.slice(0, start);
  const gap = before === "" || /\s$/.test(before) ? "" : " ";
  return { text: before + gap + word + text.slice(end), caret: start + gap.length + word.length };
}
