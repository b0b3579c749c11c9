import { afterEach, beforeEach, expect, test } from "vitest";
import { notificationText, Permissions } from "../../src/host/permissions";
import type { PermissionRequest } from "../../src/shared/wire";
import { CancellationTokenSource, commands, EventEmitter, notifications } from "./vscode";
import { PlayedDaemon } from "./wire";

const question = (more: Partial<PermissionRequest> = {}): PermissionRequest => ({
  sessionId: "s", promptId: "p", requestId: "r1", toolCallId: "c", toolName: "bash", title: "Run it", kind: "execute",
  subject: { type: "command", command: "npm test", cwd: "/w" },
  options: [
    { optionId: "allow_once", label: "Allow once", kind: "allow_once", scope: "once" },
    { optionId: "allow_always", label: "Allow npm", kind: "allow_always", scope: "session", rule: "npm" },
    { optionId: "reject_once", label: "Reject", kind: "reject_once", scope: "once" },
  ],
  ...more,
});

let daemon: PlayedDaemon;
let permissions: Permissions;
let isVisible: boolean;
const seen = new EventEmitter<boolean>();
const settled = () => new Promise((resolve) => setImmediate(resolve));

beforeEach(() => {
  daemon = new PlayedDaemon();
  isVisible = true;
  permissions = new Permissions({
    client: daemon, isVisible: () => isVisible, onVisible: seen.event as never, shownSessionId: () => "s", show: async () => undefined,
    log: { warn: () => undefined } as never,
  });
});
afterEach(async () => {
  permissions.dispose();
  await settled();
  expect(notifications).toEqual([]);
});

const ask = (request: PermissionRequest, source = new CancellationTokenSource()) => daemon.asks("agentd/permission/request", request, source.token);

test("the view's answer is the daemon's, with what the user adds", async () => {
  const asked = ask(question());
  await permissions.handlers.permission({ requestId: "r1", optionId: "reject_once", feedback: "use make" });
  expect(await asked).toEqual({ optionId: "reject_once", feedback: "use make" });
  expect(notifications).toEqual([]);
});

test("the first answer counts, a later one is the daemon's to refuse", async () => {
  const asked = ask(question());
  await permissions.handlers.permission({ requestId: "r1", optionId: "allow_once" });
  expect(await asked).toEqual({ optionId: "allow_once" });
  void permissions.handlers.permission({ requestId: "r1", optionId: "reject_once" });
  expect((await daemon.next("agentd/permission/respond")).params).toEqual({ requestId: "r1", optionId: "reject_once" });
});

test("an option that was not offered is no answer, and the question stays", async () => {
  const asked = ask(question());
  await expect(permissions.handlers.permission({ requestId: "r1", optionId: "allow_everything" })).rejects.toMatchObject({ kind: "invalidParams" });
  await permissions.handlers.permission({ requestId: "r1", optionId: "allow_once" });
  expect(await asked).toEqual({ optionId: "allow_once" });
});

test("while the view is hidden a notification asks, and its answer closes it", async () => {
  isVisible = false;
  const asked = ask(question());
  expect(notifications.length).toBe(1);
  await commands.executeCommand("agentd.ui.answer", "r1", "allow_once");
  expect(await asked).toEqual({ optionId: "allow_once" });
});

test("a question that is withdrawn closes its notification and is answered", async () => {
  isVisible = false;
  const source = new CancellationTokenSource();
  const asked = ask(question(), source);
  source.cancel();
  expect(await asked).toEqual({ cancelled: true });
});

test("when the view comes into sight the notification goes, and comes again when it is hidden", async () => {
  isVisible = false;
  const asked = ask(question());
  isVisible = true;
  seen.fire(true);
  await settled();
  expect(notifications).toEqual([]);
  isVisible = false;
  seen.fire(false);
  expect(notifications.length).toBe(1);
  await permissions.handlers.permission({ requestId: "r1", optionId: "allow_once" });
  await asked;
});

test("a question of a session that is not shown is asked by a notification, though the view is there", async () => {
  const asked = ask(question({ sessionId: "other" }));
  expect(notifications.length).toBe(1);
  await commands.executeCommand("agentd.ui.answer", "r1", "reject_once");
  expect(await asked).toEqual({ optionId: "reject_once" });
});

test("a short command is asked about whole, with its answers", () => {
  const text = notificationText(question());
  expect(text).toContain("Run in /w: npm test");
  expect(text).toContain("[Allow once](command:agentd.ui.answer?");
  expect(text).toContain("[Reject](command:agentd.ui.answer?");
  expect(text).not.toContain("Allow npm");
});

test.each([
  ["long", `echo ${"x".repeat(400)}`],
  ["of several lines", "true\nrm -rf ."],
  ["that turns its text", "echo \u202egnp.exe"],
  ["with a link in it", "echo [Allow once](command:workbench.action.quit)"],
  ["with an address in it", "curl https://example.org"],
])("a command %s is not answered from a notification", (_, command) => {
  const text = notificationText(question({ subject: { type: "command", command, cwd: "/w" } }));
  expect(text).not.toContain("Allow once");
  expect(text).toContain("[Open the chat](command:agentd.ui.answer?");
  expect(text).not.toContain(command);
});

test("a change is looked at in the chat, where all of it can be seen", () => {
  const text = notificationText(question({ subject: { type: "edit", uri: "file:///w/a", patch: "+a" } }));
  expect(text).not.toContain("Allow once");
});
