/** What is recorded: scripts for the model and what the user does. */
import { readFileSync } from "node:fs";

const text = (text) => ({ type: "text", text });
const thinking = (text) => ({ type: "thinking", text });
const call = (name, args, id) => ({ type: "tool_call", name, arguments: args, ...(id ? { id } : {}) });
const usage = (input, output, cacheRead = 0) => ({ input, output, cacheRead, total: input + output + cacheRead, contextTokens: input + output + cacheRead, contextWindow: 200000, cost: { total: (input * 3 + output * 15 + cacheRead * 0.3) / 1e6, currency: "USD" } });

const ANSWER = `## What I found

The **mean** is computed with \`//\`, which *rounds down*. There are three places to look at:

1. \`average\` itself
2. its callers, where
   - an empty list is a \`ValueError\`
   - ~~integers~~ floats are expected
3. the tests

| function | before | after |
|:---------|:------:|------:|
| \`average([1, 2])\` | 1 | 1.5 |
| \`average([2, 2])\` | 2 | 2.0 |

\`\`\`python
def average(numbers: list[float]) -> float:
    """The arithmetic mean; raises ValueError for an empty list."""
    if not numbers:
        raise ValueError("average of nothing")
    return sum(numbers) / len(numbers)  # true division
\`\`\`

> Rounding is a matter of presentation.

See [the documentation](https://docs.python.org/3/library/statistics.html) for \`statistics.fmean\`. <b>No HTML</b> here, nor ![pictures](https://example.com/x.png). 🎉 Café, 日本語.
`;

export const scenarios = {
  demo: {
    project: true,
    script: JSON.parse(readFileSync(new URL("../../../agentd/providers/scripts/demo.json", import.meta.url), "utf8").replaceAll("${PYTHON}", "python3")),
    async play(it) {
      const asked = it.next("permission_requested").then(() => it.read());
      const running = it.next("tool_execution_start").then(() => it.read());
      await it.prompt("A test of this project fails. Find out why and repair it.", { promptId: "repair" });
      await asked;
      await running;
    },
  },
  answer: {
    script: [{ content: [thinking("The user wants an overview.\n\nI should be brief, and show the table."), text(ANSWER)], chunkSize: 7, delayMs: 4, usage: usage(1840, 420, 1200) }],
    async play(it) {
      const middle = it.next("message_update", ({ event }) => event.update.kind === "text" && event.update.offset > 300).then(() => it.read());
      await it.prompt([
        { type: "resource", uri: `file://${it.place}/workspace/calculator.py`, range: { start: { line: 2, character: 0 }, end: { line: 9, character: 0 } } },
        { type: "text", text: "What is wrong with average?" },
      ], { promptId: "ask" });
      await middle;
    },
    project: true,
  },
  output: {
    mode: "edit",
    script: [
      { content: [text("I'll run the build."), call("bash", { command: "printf '\\033[1mbuild\\033[0m\\n'; for i in 1 2 3; do printf '\\033[32m✓\\033[0m step %s\\n' $i; sleep 0.05; done; echo 'warning: unused' >&2; printf '10%%\\r55%%\\r100%%\\n'; printf '\\033[31mfailed\\033[0m\\n'; exit 3" })] },
      { content: [text("It fails at the end. Now something long."), call("bash", { command: "echo begun; sleep 60" })] },
    ],
    async play(it) {
      const second = it.next("tool_execution_update", ({ event }) => event.update.delta.includes("begun"));
      const run = it.prompt("Build it", { promptId: "build" });
      await second;
      await it.read();
      await it.call("agentd/cancel");
      await run;
    },
  },
  failures: {
    script: [
      { content: [text("Let me ")], delayMs: 5, error: { kind: "overloaded", message: "Overloaded.", status: 529, retryable: true, retryAfterMs: 30 } },
      { content: [text("Here it is, after all.")], usage: usage(300, 12) },
      { content: [], error: { kind: "auth", message: "The key was refused by the server.", status: 401 } },
      { content: [text("This answer is cut off in the mid")], stopReason: "length", usage: usage(320, 4096) },
      { content: [text("I can't help with that.")], stopReason: "refusal" },
    ],
    async play(it) {
      await it.prompt("Try", { promptId: "retried" });
      await it.read();
      await it.prompt("Again", { promptId: "auth" });
      await it.prompt("Write a long answer", { promptId: "long" });
      await it.prompt("Something bad", { promptId: "refused" });
    },
  },
  permissions: {
    project: true,
    answer: (question) => question.toolName === "bash" ? { optionId: "reject_once", feedback: "Use the tests only." } : { optionId: "allow_once" },
    script: [
      { content: [text("I'll clean up."), call("bash", { command: "rm -rf build" }), call("write_file", { file_path: "notes.md", content: "# Notes\n\n- one\n- two\n" })] },
      { content: [text("I left the folder alone and wrote the notes.")] },
    ],
    async play(it) {
      const asked = it.next("permission_requested").then(() => it.read());
      await it.prompt("Clean up", { promptId: "clean" });
      await asked;
    },
  },
  waiting: {
    mode: "edit",
    script: [
      { content: [call("todo_write", { items: [{ text: "Look", status: "in_progress" }, { text: "Tell", status: "pending" }] }), text("A list first.")] },
      { content: [call("bash", { command: "sleep 0.3; echo looked" })] },
      { content: [text("Also done what you said meanwhile.")] },
      { content: [text("And this is the queued one.")] },
      { content: [text("A fresh start.")] },
    ],
    async play(it) {
      const started = it.next("tool_execution_start", ({ event }) => event.toolName === "bash");
      const run = it.prompt("Look around", { promptId: "first" });
      await started;
      const steered = it.prompt("Be brief", { promptId: "steer", whenBusy: "steer" });
      const queued = it.prompt("And then?", { promptId: "second", whenBusy: "queue" });
      await it.read();
      await Promise.all([run, steered, queued]);
      await it.call("agentd/session/rewind", { promptId: "second", scope: "both" });
      await it.read();
      await it.call("agentd/session/rewind", { undo: true });
      await it.read();
      await it.call("agentd/session/rewind", { promptId: "second", scope: "both" });
      await it.prompt("Something else", { promptId: "third" });
    },
  },
  agents: {
    project: true,
    script: [
      { content: [text("Two sub-agents look at this."), call("task", { tasks: [{ description: "read the module", prompt: "PART-ONE: read calculator.py" }, { description: "list the tests", prompt: "PART-TWO: list tests" }] })] },
      { when: "PART-ONE", content: [text("Reading."), call("read_file", { file_path: "calculator.py" })] },
      { when: "PART-ONE", content: [text("The module has one function with `//`.")] },
      { when: "PART-TWO", content: [call("bash", { command: "ls" })] },
      { when: "PART-TWO", content: [text("There are two tests.")] },
      { content: [text("Both are done: the fault is the division.")], usage: usage(900, 30) },
    ],
    async play(it) {
      const asked = it.next("permission_requested").then(() => it.read());
      await it.prompt("Look at all of it", { promptId: "all" });
      await asked;
    },
  },
  recovery: {
    mode: "edit",
    script: [{ content: [text("This takes long."), call("bash", { command: "echo on; sleep 60" })] }],
    async play(it) {
      const on = it.next("tool_execution_update");
      it.prompt("Go", { promptId: "go" }).catch(() => {}); // its daemon is killed
      await on;
      await it.killAndReopen();
    },
  },
  compaction: {
    script: [
      { content: [text("One. ".repeat(30))], usage: usage(3000, 60) },
      { content: [text("Two. ".repeat(30))], usage: usage(3100, 60) },
      { content: [text("Summary: the user counts.")], usage: usage(3200, 20) },
    ],
    async play(it) {
      await it.prompt("Say one", { promptId: "one" });
      await it.prompt("Say two", { promptId: "two" });
      await it.call("agentd/session/compact", {});
      await it.prompt([{ type: "command", name: "help", arguments: "" }], { promptId: "help" });
    },
  },
};
