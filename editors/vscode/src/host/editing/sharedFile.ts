/** Files that several windows write: one at a time, each time with what the others have written since. */
import { randomUUID } from "node:crypto";
import { mkdir, readFile, rename, rm, stat, writeFile } from "node:fs/promises";
import * as path from "node:path";

/** A lock that is older was left by a window that ended while it wrote: that takes milliseconds. */
const STALE_MS = 5_000;
const AGAIN_MS = 10;

/** In milliseconds; of a file that is gone already, none. */
export async function ageOf(file: string): Promise<number> {
  return stat(file).then(({ mtimeMs }) => Date.now() - mtimeMs, () => 0);
}

/** Does `work` while no other window does anything under the same lock; the folder of the lock is made. */
export async function alone<R>(lock: string, work: () => Promise<R>): Promise<R> {
  const own = randomUUID();
  await mkdir(path.dirname(lock), { recursive: true, mode: 0o700 });
  while (!(await isTaken(lock, own))) {
    if ((await ageOf(lock)) > STALE_MS && (await isRemoved(lock))) continue;
    await new Promise((resolve) => setTimeout(resolve, AGAIN_MS));
  }
  try {
    return await work();
  } finally {
    // Another window has it where this one took too long: the machine slept.
    if ((await readFile(lock, "utf8").catch(() => "")) === own) await rm(lock, { force: true });
  }
}

async function isTaken(lock: string, own: string): Promise<boolean> {
  try {
    await writeFile(lock, own, { flag: "wx", mode: 0o600 });
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "EEXIST") return false;
    throw error;
  }
}

/**
 * Whether a lock that was left is gone by this window's doing. One at a time looks once more and removes it: of two
 * that find it old, the later one would remove what the other one has taken by then.
 */
async function isRemoved(lock: string): Promise<boolean> {
  const removing = `${lock}.removing`;
  if (!(await isTaken(removing, ""))) {
    if ((await ageOf(removing)) > STALE_MS) await rm(removing, { force: true });
    return false;
  }
  try {
    if ((await ageOf(lock)) <= STALE_MS) return false;
    await rm(lock, { force: true });
    return true;
  } finally {
    await rm(removing, { force: true });
  }
}

/** Puts a file in the place of another one, whole or not at all. For the user's eyes alone. */
export async function replace(file: string, text: string): Promise<void> {
  const part = `${file}.${process.pid}`;
  await writeFile(part, text, { mode: 0o600 });
  await rename(part, file);
}

/** What is written in a file; undefined where there is none. Fails on what is no JSON. */
export async function written(file: string): Promise<unknown> {
  let text: string;
  try {
    text = await readFile(file, "utf8");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    throw error;
  }
  return JSON.parse(text) as unknown;
}

/** The same, but of what is no JSON undefined as well: after a power cut a file may be empty, and is to be written anew. */
export function readable(file: string): Promise<unknown> {
  return written(file).catch((error: unknown) => {
    if (error instanceof SyntaxError) return undefined;
    throw error;
  });
}
