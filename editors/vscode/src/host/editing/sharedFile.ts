/** Files that several windows write: one at a time, each time with what the others have written since. */
import { mkdir, open, readFile, rename, rm, stat, writeFile } from "node:fs/promises";
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
  await mkdir(path.dirname(lock), { recursive: true, mode: 0o700 });
  while (!(await isTaken(lock))) {
    if ((await ageOf(lock)) > STALE_MS) await rm(lock, { force: true });
    else await new Promise((resolve) => setTimeout(resolve, AGAIN_MS));
  }
  try {
    return await work();
  } finally {
    await rm(lock, { force: true });
  }
}

async function isTaken(lock: string): Promise<boolean> {
  try {
    await (await open(lock, "wx", 0o600)).close();
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "EEXIST") return false;
    throw error;
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
