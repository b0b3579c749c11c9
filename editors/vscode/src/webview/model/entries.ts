/** Messages as the entries that the conversation shows. */
import type { Message, ToolResultMessage } from "../../shared/wire";
import { userEntry, whole, withResult } from "./messages";
import { resulted } from "./tools";
import type { Entry } from "./view";

export function isMessage(entry: Entry): boolean {
  return entry.type === "user" || entry.type === "assistant";
}

/** Messages as entries, without those that are `known`; `loose` are results whose calls are not among them. */
export function entriesOf(messages: readonly Message[], known: ReadonlySet<string>): { entries: readonly Entry[]; loose: ToolResultMessage[] } {
  const list: Entry[] = [];
  const results: ToolResultMessage[] = [];
  for (const message of messages) {
    if (known.has(message.messageId)) continue;
    if (message.role === "user") list.push(userEntry(message, undefined));
    else if (message.role === "assistant") list.push(whole(message, undefined, undefined));
    else results.push(message);
  }
  let entries: readonly Entry[] = list;
  const loose: ToolResultMessage[] = [];
  for (const result of results) {
    const filed = withResult(entries, result, resulted);
    if (filed) entries = filed;
    else loose.push(result);
  }
  return { entries, loose };
}
