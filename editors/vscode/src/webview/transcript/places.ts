/** Links of the model to files: `src/a.ts`, `src/a.ts:12`, `/home/me/a.ts#L12-L20`, `file:///…`. */
export interface FilePlace { uri: string; /** 0-based. */ line?: number }

/** The file that a link leads to, below `folder` (a URI) where it is relative; null for a link to elsewhere. */
export function fileOf(href: string, folder: string): FilePlace | null {
  const scheme = /^([a-z][a-z0-9+.-]+):(?!\d+(?:[:#-]|$))/i.exec(href)?.[1];
  if (scheme !== undefined && scheme.toLowerCase() !== "file") return null;
  const found = /^(.*?)(?:#L?(\d+)(?:-L?\d+)?|:(\d+)(?:[:-]\d+)?)?$/s.exec(href)!;
  const [, path = "", hash, colon] = found;
  if (path === "" || path.startsWith("#") || path.startsWith("//")) return null;
  let uri: string;
  try {
    // A colon in a name is not a scheme: the dot keeps it from being read as one.
    uri = new URL(scheme || path.startsWith("/") ? path : `./${path}`, folder.endsWith("/") ? folder : `${folder}/`).href;
  } catch {
    return null; // no address at all
  }
  const line = Number(hash ?? colon ?? 0);
  return { uri, ...(line > 0 ? { line: line - 1 } : {}) };
}
