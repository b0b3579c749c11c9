/** Colours for code: highlight.js with its common languages, by the name that the text gives; never guessed. */
import hljs from "highlight.js/lib/common";

const LONGEST = 200_000;

/** HTML with classes, or null where the language is not known or the code is too long to be worth it. */
export function highlight(code: string, language: string): string | null {
  if (language === "" || code.length > LONGEST || !hljs.getLanguage(language)) return null;
  return hljs.highlight(code, { language, ignoreIllegals: true }).value;
}
