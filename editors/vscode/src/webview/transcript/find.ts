/**
 * Finding words in the whole conversation, also where it is not in the page: the browser's own search sees only the
 * rows that are drawn, and VS Code gives views of the side bar none.
 */
import type { Entry, Tool } from "../model/view";
import { titleOf } from "./tool-title";
import { wordsOf } from "./user";

/** The keys of the entries that hold `query`, whatever its case, in their order. */
export function found(entries: readonly Entry[], query: string): string[] {
  const wanted = folded(query.trim());
  if (wanted === "") return [];
  return entries.filter((entry) => folded(said(entry)).includes(wanted)).map((entry) => entry.id);
}

function folded(text: string): string {
  return text.toLocaleLowerCase();
}

/** What an entry shows, without what is folded in it. */
function said(entry: Entry): string {
  switch (entry.type) {
    case "user": return entry.content.map(wordsOf).join("\n");
    case "assistant": return entry.blocks.map((block) => (block.type === "text" ? block.text : block.type === "tool" ? called(block.tool) : "")).join("\n");
    case "notice": return entry.message;
    case "run": return entry.error?.message ?? "";
    default: return "";
  }
}

function called(tool: Tool): string {
  const patches = tool.details?.type === "edit" ? tool.details.files.map((file) => file.patch) : [];
  return [titleOf(tool), ...patches].join("\n");
}

/** The places of `query` in the text below `root`, for the browser to mark. A word may be cut into nodes: those are not seen. */
export function ranges(root: Element, query: string): Range[] {
  const wanted = folded(query.trim());
  const all: Range[] = [];
  if (wanted === "") return all;
  const nodes = document.createTreeWalker(root, NodeFilter.SHOW_TEXT);
  for (let node = nodes.nextNode(); node; node = nodes.nextNode()) {
    const text = folded(node.textContent ?? "");
    for (let at = text.indexOf(wanted); at >= 0; at = text.indexOf(wanted, at + wanted.length)) {
      const range = document.createRange();
      range.setStart(node, at);
      range.setEnd(node, Math.min(at + wanted.length, node.textContent!.length));
      all.push(range);
    }
  }
  return all;
}
