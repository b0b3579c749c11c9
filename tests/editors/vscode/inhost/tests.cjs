/** What the tests in the extension host are told with and wait with. */
const tests = new Map();

function test(name, play) {
  if (tests.has(name)) throw new Error(`two tests have the name ${name}`);
  tests.set(name, play);
}

const SECONDS = 30;

/** What `look` gives once it is neither null, undefined nor false; fails with `what` at the deadline. */
async function until(what, look, seen) {
  const end = Date.now() + SECONDS * 1000;
  for (;;) {
    const value = await look();
    if (value !== false && value !== null && value !== undefined) return value;
    if (Date.now() > end) throw new Error(`it did not happen: ${what}\n${seen ? JSON.stringify(await seen()) : ""}`);
    await new Promise((done) => setTimeout(done, 25));
  }
}

module.exports = { test, tests, until };
