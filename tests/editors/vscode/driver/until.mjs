/** Waiting for conditions, each with a deadline. */

export const SECONDS = 45;

const POLL_MS = 25;

/**
 * What `look` gives once it is neither null, undefined nor false. What it throws meanwhile counts as "not yet".
 * Fails after `seconds` with `what`, and with what was thrown or seen last.
 */
export async function until(what, look, { seconds = SECONDS, seen } = {}) {
  const end = Date.now() + seconds * 1000;
  let thrown;
  for (;;) {
    try {
      const value = await look();
      thrown = undefined;
      if (value !== false && value !== null && value !== undefined) return value;
    } catch (error) {
      thrown = error;
    }
    if (Date.now() > end) break;
    await new Promise((done) => setTimeout(done, POLL_MS));
  }
  const last = thrown ? `\n${thrown.message}` : seen ? `\n${await seen()}` : "";
  throw new Error(`it did not happen: ${what}${last}`);
}

/** A promise's value, or a failure after `seconds` that says `what`. */
export async function within(what, promise, seconds = SECONDS) {
  let timer;
  const late = new Promise((_, fail) => {
    timer = setTimeout(() => fail(new Error(`it did not happen: ${what}`)), seconds * 1000);
  });
  try {
    return await Promise.race([promise, late]);
  } finally {
    clearTimeout(timer);
  }
}

/** Fails with `what` unless the condition holds. */
export function expect(condition, what) {
  if (!condition) throw new Error(what);
}
