/**
 * The prompt that is being written: what stands in the box, and the chips beside it.
 *
 * A chip that was added by a word of the text (`@src/a.ts`) goes along only while that word stands there; it is
 * kept so that undoing the deletion of the word brings the chip back.
 */
import type { Attachment } from "../../shared/messages";
import type { ContentBlock } from "../../shared/wire";

export interface Chip {
  label: string;
  block: ContentBlock;
  /** The word of the text that stands for it. */
  mention?: string;
}

export interface Draft {
  text: string;
  chips: readonly Chip[];
}

export const EMPTY: Draft = { text: "", chips: [] };

/** Whether the mention stands in the text as a word of its own: `@a.ts` does not stand in `@a.tsx`. */
export function mentions(text: string, mention: string): boolean {
  for (let at = text.indexOf(mention); at >= 0; at = text.indexOf(mention, at + 1)) {
    const before = text[at - 1] ?? " ";
    const after = text.slice(at + mention.length);
    if (/[\s([{"'`]/.test(before) && /^(?:$|\s|[)\]}"'`,;:!?]|\.(?:\s|$))/.test(after)) return true;
  }
  return false;
}

/** The chips that go along with the text as it stands. */
export function present(draft: Draft): readonly Chip[] {
  return draft.chips.filter((chip) => chip.mention === undefined || mentions(draft.text, chip.mention));
}

export function isEmpty(draft: Draft): boolean {
  return draft.text.trim() === "" && present(draft).length === 0;
}

function sameBlock(a: ContentBlock, b: ContentBlock): boolean {
  return JSON.stringify(a) === JSON.stringify(b);
}

/** The draft with these beside it. What is there already is not added a second time. */
export function attach(draft: Draft, added: readonly (Attachment & { mention?: string })[]): Draft {
  const chips = [...draft.chips];
  for (const chip of added) {
    const at = chips.findIndex((other) => sameBlock(other.block, chip.block));
    if (at < 0) chips.push({ ...chip });
    // Attached apart from the text it stays when a word for it goes.
    else if (chip.mention === undefined) chips[at] = { label: chip.label, block: chip.block };
    else if (!present(draft).includes(chips[at]!)) chips[at] = { ...chip };
  }
  return { ...draft, chips };
}

export function detach(draft: Draft, chip: Chip): Draft {
  return { ...draft, chips: draft.chips.filter((other) => other !== chip) };
}

/** Both, the returned one first: what was sent and comes back never takes the place of what was written since. */
export function join(returned: Draft, present: Draft): Draft {
  const texts = [returned.text, present.text].filter((text) => text.trim() !== "");
  const both = { text: texts.join("\n\n"), chips: returned.chips };
  return attach(both, present.chips);
}
