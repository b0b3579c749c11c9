/** Text of models and files where it is shown to decide on. */

/** Characters that no reader sees, or that turn the text around them. */
const HIDDEN = /[\u0000-\u001f\u007f-\u009f\u00ad\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb]|[\u{e0000}-\u{e0fff}]/gu;

/** The same text with control characters and hidden marks spelled out, on one line. */
export function visible(text: string): string {
  return text.replace(HIDDEN, (mark) => {
    if (mark === "\n") return "\\n";
    if (mark === "\t") return "\\t";
    const code = mark.codePointAt(0) ?? 0;
    return `\\u{${code.toString(16)}}`;
  });
}

/** Whether VS Code would make a link of a part of it: a notification shows `[text](address)` as one. */
export function holdsLink(text: string): boolean {
  return /\]\(|https?:\/\//i.test(text);
}

/**
 * Text of others as a message of VS Code can show it: it makes links of `[text](address)`, which may run any command.
 * On one line, since a message has no other.
 */
export function unlinked(text: string): string {
  return visible(text.trim().replace(/\s*[\r\n]\s*/g, " ")).replaceAll("](", "] (");
}
