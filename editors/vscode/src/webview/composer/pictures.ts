/**
 * Where the images of drafts are kept while the view is hidden: in the browser's own database, as what
 * `vscode.setState` keeps is written anew with every letter.
 */
import type { ContentBlock, ImageContent } from "../../shared/wire";
import type { Draft } from "./draft";

export interface Pictures {
  put(key: string, data: string): Promise<void>;
  /** Undefined where it is not there (any more). */
  get(key: string): Promise<string | undefined>;
  /** Removes all but these. */
  keep(keys: ReadonlySet<string>): Promise<void>;
}

const STORE = "images";

export function browserPictures(name = "agentd.drafts"): Pictures {
  let opened: Promise<IDBDatabase> | undefined;
  const open = () => (opened ??= new Promise((resolve, reject) => {
    const request = indexedDB.open(name, 1);
    request.onupgradeneeded = () => request.result.createObjectStore(STORE);
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error ?? new Error("The browser's database cannot be opened."));
  }));
  async function run<T>(mode: IDBTransactionMode, work: (store: IDBObjectStore) => IDBRequest<T>): Promise<T> {
    const store = (await open()).transaction(STORE, mode).objectStore(STORE);
    const request = work(store);
    return new Promise((resolve, reject) => {
      request.onsuccess = () => resolve(request.result);
      request.onerror = () => reject(request.error ?? new Error("The browser's database does not answer."));
    });
  }
  return {
    async put(key, data) {
      await run("readwrite", (store) => store.put(data, key));
    },
    get: (key) => run<string | undefined>("readonly", (store) => store.get(key)),
    async keep(keys) {
      const all = await run("readonly", (store) => store.getAllKeys());
      for (const key of all) if (!keys.has(String(key))) await run("readwrite", (store) => store.delete(key));
    },
  };
}

/** In the place of an image's data, where that is kept elsewhere. No base64 has a colon. */
const ELSEWHERE = "kept:";
const keys = new WeakMap<ContentBlock, string>();
let made = 0;

function keyOf(image: ImageContent): string {
  let key = keys.get(image);
  if (key === undefined) {
    key = `${Date.now().toString(36)}-${(made += 1)}-${Math.random().toString(36).slice(2)}`;
    keys.set(image, key);
  }
  return key;
}

/** Whether the image is known and not there yet. */
export function isElsewhere(block: ContentBlock): boolean {
  return block.type === "image" && block.data.startsWith(ELSEWHERE);
}

/** The draft without the data of its images, and what has to be kept for it. */
export function lighten(draft: Draft): { draft: Draft; images: readonly (readonly [key: string, data: string])[] } {
  const images: [string, string][] = [];
  const chips = draft.chips.map((chip) => {
    if (chip.block.type !== "image" || isElsewhere(chip.block)) return chip;
    const key = keyOf(chip.block);
    images.push([key, chip.block.data]);
    return { ...chip, block: { ...chip.block, data: ELSEWHERE + key } };
  });
  return images.length > 0 ? { draft: { ...draft, chips }, images } : { draft, images };
}

/** The draft whole again; `lost` are the labels of images that are not there any more. */
export async function restore(draft: Draft, pictures: Pictures): Promise<{ draft: Draft; lost: string[] }> {
  const lost: string[] = [];
  const chips = await Promise.all(draft.chips.map(async (chip) => {
    if (chip.block.type !== "image" || !isElsewhere(chip.block)) return chip;
    const key = chip.block.data.slice(ELSEWHERE.length);
    const data = await pictures.get(key).catch(() => undefined);
    if (data === undefined) {
      lost.push(chip.label);
      return null;
    }
    const block: ImageContent = { ...chip.block, data };
    keys.set(block, key);
    return { ...chip, block };
  }));
  return { draft: { ...draft, chips: chips.filter((chip) => chip !== null) }, lost };
}

export function hasElsewhere(draft: Draft): boolean {
  return draft.chips.some((chip) => isElsewhere(chip.block));
}
