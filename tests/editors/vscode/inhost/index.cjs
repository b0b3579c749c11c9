/**
 * Runs inside VS Code's extension host, beside our extension: the modules of this folder tell their tests with
 * `test`. Says what came of each as a line of JSON behind MARK on the console, which the driver reads.
 */
const { readdirSync } = require("node:fs");
const { join } = require("node:path");
const { tests } = require("./tests.cjs");

const MARK = "in-host test: ";
const SECONDS = 60;

function within(seconds, promise) {
  let timer;
  const late = new Promise((_, fail) => {
    timer = setTimeout(() => fail(new Error(`it did not end within ${seconds} s`)), seconds * 1000);
  });
  return Promise.race([promise, late]).finally(() => clearTimeout(timer));
}

async function run() {
  for (const name of readdirSync(__dirname).sort()) {
    if (name.endsWith(".test.cjs")) require(join(__dirname, name));
  }
  for (const [name, play] of tests) {
    let result = { name, ok: true };
    try {
      await within(SECONDS, play());
    } catch (error) {
      result = { name, ok: false, error: error.stack ?? String(error) };
    }
    console.log(MARK + JSON.stringify(result));
  }
}

module.exports = { run };
