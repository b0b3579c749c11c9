const assert = require("node:assert/strict");
const vscode = require("vscode");
const { test } = require("./tests.cjs");

test("the extension activates by itself", async () => {
  const extension = vscode.extensions.getExtension("agentd.agentd");
  assert.ok(extension);
  await extension.activate();
  assert.equal(extension.isActive, true);
});
