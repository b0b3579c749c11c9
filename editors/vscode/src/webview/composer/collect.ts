/** What is pasted, dropped or chosen, as attachments; what cannot be attached is said with the reason. */
import type { Attachment } from "../../shared/messages";
import type { Store } from "../model/store";
import type { Box } from "./box";
import { attach } from "./draft";
import { NoImage, readImage } from "./images";

export interface Collector {
  /** True: it was taken, nothing of it goes into the text. */
  pasted(data: DataTransfer): boolean;
  dropped(data: DataTransfer): Promise<void>;
  chosen(files: readonly File[]): Promise<void>;
  /** What the editor has at hand: the selection, the problems. */
  fromEditor(kind: "selection" | "diagnostics"): Promise<void>;
}

export function createCollector(store: Pick<Store, "call">, box: Box): Collector {
  function add(attachments: readonly Attachment[]): void {
    if (attachments.length > 0) box.edit((draft) => attach(draft, attachments));
    box.askFocus();
  }

  function complain(message: string, hint?: string): void {
    box.complain({ kind: "host", message, ...(hint ? { hint } : {}) });
  }

  async function images(files: readonly File[]): Promise<void> {
    const done = await Promise.allSettled(files.map(readImage));
    add(done.flatMap((one) => (one.status === "fulfilled" ? [one.value] : [])));
    const reasons = done.flatMap((one) => (one.status === "rejected" ? [reasonOf(one.reason)] : []));
    if (reasons.length > 0) complain(reasons.join(" "), "Other files are attached by @ and their name, or dragged from the explorer.");
  }

  async function ask(work: () => Promise<Attachment[]>, none: string): Promise<void> {
    try {
      const found = await work();
      add(found);
      if (found.length === 0) complain(none);
    } catch (error) {
      complain(reasonOf(error), (error as { hint?: string }).hint);
    }
  }

  return {
    pasted(data) {
      // Office programs put a picture of the text beside the text.
      if (data.files.length === 0 || data.types.includes("text/plain")) return false;
      void images([...data.files]);
      return true;
    },
    async dropped(data) {
      const uris = urisIn(data);
      const files = [...data.files];
      const text = data.getData("text/plain");
      if (uris.length > 0) await ask(() => store.call("attach", { uris }), "Nothing of it can be attached.");
      else if (files.length > 0) await images(files);
      else if (text !== "") box.edit((draft) => ({ ...draft, text: draft.text + text }), Infinity);
    },
    chosen: images,
    fromEditor: (kind) => ask(async () => {
      const found = await store.call("complete", { trigger: "@", query: kind });
      return found.flatMap((one) => (one.kind === kind && one.attachment ? [one.attachment] : []));
    }, kind === "selection" ? "Nothing is selected in the editor." : "There are no problems to attach."),
  };
}

function reasonOf(error: unknown): string {
  if (error instanceof NoImage) return error.message;
  return (error as { message?: string }).message ?? String(error);
}

/** The files in a drop: VS Code's own lists first, then the web's. Each once, in order. */
export function urisIn(data: Pick<DataTransfer, "getData">): string[] {
  const lists = [
    () => data.getData("application/vnd.code.uri-list").split(/\r?\n/),
    () => JSON.parse(data.getData("resourceurls") || "[]") as string[],
    () => (JSON.parse(data.getData("codefiles") || "[]") as string[]).map(fileUri),
    () => data.getData("text/uri-list").split(/\r?\n/),
  ];
  for (const list of lists) {
    const uris = attempt(list).filter((uri) => typeof uri === "string" && /^[a-z][a-z0-9+.-]*:/i.test(uri) && !/^(?:https?|data):/i.test(uri));
    if (uris.length > 0) return [...new Set(uris)];
  }
  return [];
}

function attempt(list: () => string[]): string[] {
  try {
    const found = list();
    return Array.isArray(found) ? found : [];
  } catch {
    // Not the list that it is called.
    return [];
  }
}

/** The URI of a path as the system writes it. */
export function fileUri(path: string): string {
  const slashed = path.replace(/\\/g, "/");
  const parts = slashed.split("/").map((part, index) => (index === 0 && /^[a-z]:$/i.test(part) ? part : encodeURIComponent(part)));
  const joined = parts.join("/");
  return joined.startsWith("//") ? `file:${joined}` : `file://${joined.startsWith("/") ? "" : "/"}${joined}`;
}
