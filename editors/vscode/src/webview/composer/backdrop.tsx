/**
 * Behind the box, the same text once more: it gives the box its height, and words that stand for something (a file
 * that goes along, a command) their ground.
 */
import type { CommandInfo } from "../../shared/wire";
import { asCommand } from "./blocks";
import { mentions, type Draft } from "./draft";

export function Backdrop({ draft, commands }: { draft: Draft; commands: readonly CommandInfo[] }) {
  const parts = partsOf(draft, commands);
  return (
    <div class="backdrop" aria-hidden="true">
      {parts.map(({ text, marked }, index) => (marked ? <mark key={index}>{text}</mark> : text))}
      {/* A last empty line has no height without something on it. */}
      {"\u200b"}
    </div>
  );
}

export interface Part { text: string; marked: boolean }

/** The text in parts; joined they are the text. */
export function partsOf({ text, chips }: Draft, commands: readonly CommandInfo[]): Part[] {
  const words = new Set(chips.flatMap((chip) => (chip.mention !== undefined && mentions(text, chip.mention) ? [chip.mention] : [])));
  const command = asCommand(text);
  const head = command && commands.some((one) => one.name === command.name) ? `/${command.name}` : "";
  const parts: Part[] = head ? [{ text: head, marked: true }] : [];
  if (words.size === 0) return [...parts, { text: text.slice(head.length), marked: false }];
  // Longer words first: `@src/` is part of `@src/a.ts`.
  const any = [...words].sort((a, b) => b.length - a.length).map((word) => word.replace(/[.*+?^${}()|[\]\\]/g, "\\$&")).join("|");
  for (const piece of text.slice(head.length).split(new RegExp(`((?:${any})(?![\\w/]))`))) {
    if (piece !== "") parts.push({ text: piece, marked: words.has(piece) });
  }
  return parts;
}
