/**
 * A draft as the content blocks of a prompt, and back (a prompt that is edited in the queue or comes back).
 *
 * A text that begins with `/name` is that command; a blank before the slash makes it a text.
 */
import type { CommandContent, ContentBlock, ImageContent, ResourceContent } from "../../shared/wire";
import { attach, present, type Chip, type Draft } from "./draft";

/** `/name` and its arguments. A name has no slash in it: `/usr/bin` is a path. */
const COMMAND = /^\/([^\s/]+)(?:\s([\s\S]*))?$/;

export function asCommand(text: string): CommandContent | null {
  const match = COMMAND.exec(text.trimEnd());
  return match ? { type: "command", name: match[1]!, arguments: (match[2] ?? "").trim() } : null;
}

/** The blocks to send; empty for an empty draft. */
export function toBlocks(draft: Draft): ContentBlock[] {
  const text = draft.text.trim();
  const chips = present(draft).map((chip) => chip.block);
  if (text === "") return chips;
  return [asCommand(draft.text) ?? { type: "text", text }, ...chips];
}

/** The same with a command as the text that it was written as. */
export function commandAsText(blocks: readonly ContentBlock[]): ContentBlock[] {
  return blocks.map((block) => (block.type === "command" ? { type: "text", text: written(block) } : block));
}

function written(command: CommandContent): string {
  return `/${command.name}${command.arguments === "" ? "" : ` ${command.arguments}`}`;
}

/** The draft that `toBlocks` makes these blocks of. The first words stand in the box, all else beside it. */
export function fromBlocks(blocks: readonly ContentBlock[]): Draft {
  const words = blocks.find((block) => block.type === "command" || (block.type === "text" && block.text.trim() !== ""));
  const chips: Chip[] = [];
  for (const block of blocks) {
    if (block === words || (block.type === "text" && block.text.trim() === "")) continue;
    chips.push({ label: labelOf(block), block });
  }
  const text = words?.type === "command" ? written(words) : words?.type === "text" ? plain(words.text.trim()) : "";
  return attach({ text, chips: [] }, chips);
}

/** A text that nobody takes for a command. */
function plain(text: string): string {
  return asCommand(text) ? ` ${text}` : text;
}

export function labelOf(block: ContentBlock): string {
  switch (block.type) {
    case "text": return firstLine(block.text);
    case "command": return written(block);
    case "image": return imageLabel(block);
    case "resource": return resourceLabel(block);
  }
}

function firstLine(text: string): string {
  const [line = ""] = text.trim().split("\n");
  return line.length > 40 ? `${line.slice(0, 39)}…` : line;
}

function imageLabel(image: ImageContent): string {
  const kind = image.mimeType.replace(/^image\//, "").toUpperCase();
  return `${kind} image`;
}

/** The last two names of its path, and its lines counted from 1. */
function resourceLabel({ uri, range }: ResourceContent): string {
  const path = decodePath(uri.replace(/^[a-z][a-z0-9+.-]*:\/*/i, "").replace(/[?#].*$/, ""));
  const name = path.split("/").filter(Boolean).slice(-2).join("/") || uri;
  if (!range) return name;
  const first = range.start.line + 1;
  // A range that ends before the first character of a line does not hold that line.
  const last = range.end.character === 0 && range.end.line > range.start.line ? range.end.line : range.end.line + 1;
  return `${name}:${first === last ? first : `${first}-${last}`}`;
}

function decodePath(path: string): string {
  try {
    return decodeURIComponent(path);
  } catch {
    return path;
  }
}
