/** Numbers and times as people read them. */

/** `0.4 s`, `12 s`, `3 min 5 s`, `2 h 5 min`. */
export function duration(ms: number): string {
  const seconds = ms / 1000;
  if (seconds < 10) return `${(Math.floor(seconds * 10) / 10).toFixed(1)} s`;
  if (seconds < 60) return `${Math.floor(seconds)} s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return `${minutes} min ${Math.floor(seconds % 60)} s`;
  return `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}

/** `812`, `4.2k`, `1.3M`. */
export function count(tokens: number): string {
  if (tokens < 1000) return String(tokens);
  if (tokens < 999_500) return `${trimmed(tokens / 1000)}k`;
  return `${trimmed(tokens / 1_000_000)}M`;
}

function trimmed(value: number): string {
  return value < 10 ? value.toFixed(1).replace(/\.0$/, "") : value.toFixed(0);
}

/** `$0.004`, `$1.25`. */
export function money(dollars: number): string {
  if (dollars === 0) return "$0";
  return dollars < 0.01 ? `$${dollars.toPrecision(1)}` : `$${dollars < 1 ? dollars.toFixed(3) : dollars.toFixed(2)}`;
}

export function plural(number: number, one: string, many = `${one}s`): string {
  return `${number} ${number === 1 ? one : many}`;
}

/** The last part of a URI, for people. */
export function fileName(uri: string): string {
  const path = uri.replace(/[?#].*$/, "").replace(/\/+$/, "");
  return decoded(path.slice(path.lastIndexOf("/") + 1)) || uri;
}

/** The path of `uri`, without the folder `base` where it lies in it. */
export function filePath(uri: string, base: string): string {
  const folder = base.endsWith("/") ? base : `${base}/`;
  return decoded(uri.startsWith(folder) ? uri.slice(folder.length) : uri.replace(/^file:\/\//, ""));
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
