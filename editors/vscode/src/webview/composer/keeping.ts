/** Keeps drafts in the view's memory, their images beside it, and brings both back. */
import { effect, type Signal } from "@preact/signals";
import type { Memory } from "../model/memory";
import type { Key, Kept, Outgoing } from "./drafts";
import { hasElsewhere, lighten, restore, type Pictures } from "./pictures";

interface Written {
  drafts: Readonly<Record<Key, Kept>>;
  outgoing: Readonly<Record<Key, readonly Outgoing[]>>;
}

/** Fills the two signals with what was kept and keeps their changes. Gives the labels of images that are lost. */
export async function keepDrafts(
  memory: Memory, drafts: Signal<Written["drafts"]>, outgoing: Signal<Written["outgoing"]>, pictures: Pictures,
): Promise<string[]> {
  const written = memory.kept<Written>("composer", { drafts: {}, outgoing: {} });
  const start = written.peek();
  // Texts are there at once. Only images have to be waited for.
  drafts.value = start.drafts;
  outgoing.value = start.outgoing;
  const images = new Set<string>();
  const lost = await bringBack(drafts, outgoing, pictures);
  effect(() => {
    const light = <T extends { draft: { text: string; chips: readonly never[] } | Kept["draft"] }>(one: T): T => {
      const { draft, images: heavy } = lighten(one.draft);
      for (const [key, data] of heavy) {
        if (images.has(key)) continue;
        images.add(key);
        // Not kept is told when it is missed; the image is still in the box.
        pictures.put(key, data).catch(() => images.delete(key));
      }
      return { ...one, draft };
    };
    written.value = {
      drafts: mapValues(drafts.value, light),
      outgoing: mapValues(outgoing.value, (all) => all.map(light)),
    };
  });
  const used = JSON.stringify(written.peek()).match(/(?<="kept:)[^"]+/g) ?? [];
  for (const key of used) images.add(key);
  await pictures.keep(new Set(used)).catch(() => undefined);
  return lost;
}

async function bringBack(drafts: Signal<Written["drafts"]>, outgoing: Signal<Written["outgoing"]>, pictures: Pictures): Promise<string[]> {
  const lost: string[] = [];
  for (const [key, kept] of Object.entries(drafts.peek())) {
    if (!hasElsewhere(kept.draft)) continue;
    const whole = await restore(kept.draft, pictures);
    lost.push(...whole.lost);
    // What was written meanwhile stays.
    const now = drafts.peek()[key];
    const draft = now ? { ...whole.draft, text: now.draft.text } : whole.draft;
    drafts.value = { ...drafts.peek(), [key]: { ...kept, draft } };
  }
  for (const [key, all] of Object.entries(outgoing.peek())) {
    const whole = await Promise.all(all.map(async (one) => {
      const { draft, lost: gone } = await restore(one.draft, pictures);
      lost.push(...gone);
      return { ...one, draft };
    }));
    outgoing.value = { ...outgoing.peek(), [key]: whole };
  }
  return lost;
}

function mapValues<T>(all: Readonly<Record<string, T>>, map: (value: T) => T): Record<string, T> {
  return Object.fromEntries(Object.entries(all).map(([key, value]) => [key, map(value)]));
}
