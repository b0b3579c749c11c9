/** Sessions and surroundings in which everything that this view can show beside the conversation is shown. */
import type { Change, Completion, Surroundings } from "../../src/shared/messages";
import type { ContentBlock, Message, ModelInfo, PermissionOption, PermissionRequest, QueuedPrompt, Session, SessionGetResult } from "../../src/shared/wire";

const at = (second: number) => new Date(Date.parse("2026-11-30T18:00:00Z") + second * 1000).toISOString();

function model(id: string, more: Partial<ModelInfo> = {}): ModelInfo {
  const [provider, name] = id.split("/") as [string, string];
  return { id, provider, name, contextWindow: 200_000, images: true, reasoning: true, efforts: ["low", "medium", "high"], available: true, ...more };
}
const without = (reason: string) => ({ available: false, reason });

export const models = [
  model("anthropic/claude-sonnet-4-5"), model("anthropic/claude-opus-4-5"), model("anthropic/claude-haiku-4-5", { efforts: [], reasoning: false }),
  model("openai/gpt-5.1", without("No key for openai: set OPENAI_API_KEY.")), model("openai/gpt-5.1-codex", without("No key for openai: set OPENAI_API_KEY.")),
  model("ollama/qwen3-coder:30b", { images: false, reasoning: false, efforts: [] }), model("gemini/gemini-3-pro", without("No key for gemini.")),
  model("mistral/devstral", without("No key for mistral.")), model("scripted/demo", { images: false, reasoning: false, efforts: [] }),
];

export const surroundings: Partial<Surroundings> = {
  folders: [{ uri: "file:///home/me/shop", name: "shop" }], folder: "file:///home/me/shop", models, defaultModel: "anthropic/claude-sonnet-4-5", keys: ["anthropic"],
  commands: [{ name: "help", description: "The commands", source: "built-in" }, { name: "review", description: "Review this branch", argumentHint: "[branch]", source: "user" }],
};

export const session: Session = {
  sessionId: "s1", workspaceUri: "file:///home/me/shop", title: "Fix the flaky checkout test", model: "anthropic/claude-sonnet-4-5", mode: "ask", effort: "medium",
  state: "idle", createdAt: at(0), updatedAt: at(60), messageCount: 4, seq: 40,
  usage: { input: 42_000, output: 3100, cacheRead: 60_000, cacheWrite: 12_000, reasoning: 900, total: 117_100, contextTokens: 88_000, contextWindow: 200_000, cost: { total: 0.3172, currency: "USD" } },
};

const messages: Message[] = [
  { role: "user", messageId: "m1", timestamp: at(1), content: [{ type: "text", text: "The checkout test fails every third run. Find out why and fix it." }] },
  { role: "assistant", messageId: "m2", timestamp: at(5), provider: "anthropic", model: "claude-sonnet-4-5", stopReason: "stop", content: [{ type: "text", text: "The test sleeps for a fixed time. I'll wait for the order instead." }] },
];

export interface Scene {
  sessionId: string;
  events: [];
  snapshot: SessionGetResult;
  surroundings: Partial<Surroundings>;
  changes?: Change[];
  others?: { sessionId: string; title: string; state: Session["state"] }[];
  none?: boolean;
  answers?: Record<string, unknown>;
}

export function scene(over: Partial<SessionGetResult> = {}, own: Partial<Session> = {}, more: Partial<Scene> = {}): Scene {
  return {
    sessionId: "s1", events: [], surroundings,
    snapshot: { session: { ...session, ...own }, messages, hasMore: false, pending: [], queue: [], todo: [], seq: 40, ...over },
    answers: { sessions: { sessions: [session, ...others.map((one) => ({ ...session, ...one }))] }, complete: completions },
    ...more,
  };
}

const file = (path: string): ContentBlock => ({ type: "resource", uri: `file:///home/me/shop/${path}` });

export const completions: Completion[] = [
  { kind: "selection", label: "selection", detail: "src/cart.ts:12-30", insert: "", attachment: { label: "src/cart.ts:12-30", block: file("src/cart.ts") } },
  { kind: "folder", label: "src/checkout/", insert: "@src/checkout ", attachment: { label: "src/checkout", block: file("src/checkout") } },
  ...["src/checkout/checkout.ts", "src/server/payment/very/deeply/nested/folder/with-a-long-name/provider.ts", "tests/checkout.test.ts"].map((path): Completion => (
    { kind: "file", label: path, insert: `@${path} `, attachment: { label: path, block: file(path) } })),
];

export const queued = (promptId: string, kind: QueuedPrompt["kind"], text: string, ...more: ContentBlock[]): QueuedPrompt => ({
  promptId, kind, queuedAt: at(60), prompt: [{ type: "text", text }, ...more],
});

const patch = `--- a/tests/checkout.test.ts
+++ b/tests/checkout.test.ts
@@ -14,7 +14,7 @@ describe("checkout", () => {
   it("creates an order", async () => {
     const cart = await fill(["apple", "pear"]);
     await cart.checkout();
-    await sleep(500);
-    expect(await orders()).toHaveLength(1);
+    const order = await waitFor(() => lastOrder(), { timeout: 5000 });
+    expect(order.items).toEqual(["apple", "pear"]);
   });
 
   it("empties the cart", async () => {
`;

function options(rule?: string): PermissionOption[] {
  return [
    { optionId: "allow_once", label: "Allow once", kind: "allow_once", scope: "once" },
    ...(rule === undefined ? [] : [
      { optionId: "allow_always", label: "Allow for this session", kind: "allow_always", scope: "session", rule },
      { optionId: "allow_workspace", label: "Always allow in this workspace", kind: "allow_always", scope: "workspace", rule },
    ] satisfies PermissionOption[]),
    { optionId: "reject_once", label: "Reject", kind: "reject_once", scope: "once" },
  ];
}

function asks(requestId: string, title: string, subject: PermissionRequest["subject"], rule?: string, more: Partial<PermissionRequest> = {}): PermissionRequest {
  return { sessionId: "s1", promptId: "p1", requestId, toolCallId: requestId, toolName: "tool", title, kind: "other", subject, options: options(rule), ...more };
}

export const questions = {
  command: asks("r1", "Run npm test", { type: "command", command: "npm test -- --run tests/checkout.test.ts\u202e && echo 'done' \\\n  | tee out.log", cwd: "/home/me/shop" }, "npm test with any arguments"),
  edit: asks("r2", "Edit tests/checkout.test.ts", { type: "edit", uri: "file:///home/me/shop/tests/checkout.test.ts", patch }, "edits of files below tests/"),
  fetch: asks("r3", "Fetch https://example.com", { type: "fetch", url: "https://example.com/docs/checkout?lang=en" }, "everything at https://example.com"),
  tool: asks("r4", "Tests: create an issue", { type: "mcp", server: "hub", tool: "create_issue", arguments: { title: "Flaky test", labels: ["bug"] } }, "this tool", { child: { sessionId: "s2", toolCallId: "x" } }),
  secret: asks("r5", "Read .env", { type: "read", uri: "file:///home/me/shop/.env" }),
};

export const todo = [["Find why the test fails", "completed"], ["Wait for the order instead of sleeping", "in_progress"], ["Run the test twenty times", "pending"]]
  .map(([text, status], index) => ({ id: String(index), text: text!, status: status as "pending" }));

export const changes = ([["src/checkout/checkout.ts", "changed", 12, 4, "open"], ["tests/checkout.test.ts", "changed", 2, 2, "accepted"], ["src/checkout/wait.ts", "created", 31, 0, "open"], ["src/sleep.ts", "deleted", 0, 9, "reverted"]] as const)
  .map(([path, action, additions, deletions, state]): Change => ({ sessionId: "s1", promptId: "p1", uri: `file:///home/me/shop/${path}`, path, action, additions, deletions, state }));

export const others: NonNullable<Scene["others"]> = [{ sessionId: "s3", title: "Write the release notes", state: "running" }, { sessionId: "s4", title: "Upgrade to Node 24", state: "waiting" }];

export const queue = [
  queued("q1", "steer", "Use waitFor, not a loop of your own"), queued("q2", "queue", "Then run the whole suite twenty times and tell me the failures", file("src/a.ts")),
  queued("q3", "queue", "And update the changelog"),
];

/** Every screen, by name. */
export const scenes: Record<string, Scene> = {
  empty: scene({}, {}, { none: true }),
  idle: scene({}, {}, { changes }),
  full: scene({}, { usage: { ...session.usage!, contextTokens: 180_000 } }, { surroundings: { ...surroundings, trusted: false, problems: [{ severity: "warning", message: "A skill has no name." }] } }),
  running: scene({ queue, todo }, { state: "running" }, { changes, others }),
  restarted: scene({ queue: queue.slice(1) }),
  command: scene({ pending: [questions.command], queue, todo }, { state: "waiting" }, { changes, others }),
  edit: scene({ pending: [questions.edit] }, { state: "waiting" }),
  several: scene({ pending: [questions.tool, questions.fetch, questions.secret] }, { state: "waiting" }),
  keys: scene({}, {}, { none: true, surroundings: {
    ...surroundings, defaultModel: null, trusted: false, folders: [...surroundings.folders!, { uri: "file:///home/me/api", name: "api" }],
    problems: [{ severity: "error", message: "config.toml: unknown key \"modl\".", uri: "file:///home/me/config.toml", line: 3 }, { severity: "warning", message: "Skill \"pdf\" has no description." }],
  } }),
  missing: scene({}, {}, { none: true, surroundings: { ...surroundings, connection: { state: "missing", reason: "No agentd was found on the PATH." } } }),
  installing: scene({}, {}, { none: true, surroundings: { ...surroundings, connection: { state: "installing", step: "Making a Python environment" } } }),
  starting: scene({}, {}, { none: true, surroundings: { ...surroundings, connection: { state: "starting" } } }),
  failed: scene({}, {}, { none: true, surroundings: { ...surroundings, connection: { state: "failed", reason: "agentd ended with code 2.", hint: "Look into the log." } } }),
  gone: scene({}, {}, { surroundings: { ...surroundings, connection: { state: "failed", reason: "agentd ended with code 2.", hint: "Look into the log." } } }),
  refused: scene({}, {}, { answers: { prompt: { failure: { kind: "authRequired", message: "There is no key for anthropic.", hint: "Set one, or choose another model." } } } }),
};
