// @vitest-environment happy-dom
import { describe, expect, it } from "vitest";
import type { Shown } from "../../../src/shared/messages";
import type { ContentBlock } from "../../../src/shared/wire";
import { createBox } from "../../../src/webview/composer/box";
import { attach } from "../../../src/webview/composer/draft";
import type { Pictures } from "../../../src/webview/composer/pictures";
import { begin, refuse, settle, shown, type Answers } from "../kit";

function memoryPictures(kept = new Map<string, string>()): Pictures {
  return {
    put: async (key, data) => void kept.set(key, data),
    get: async (key) => kept.get(key),
    keep: async (keys) => [...kept.keys()].forEach((key) => keys.has(key) || kept.delete(key)),
  };
}

async function box(answers: Answers = {}, first: Shown | null = shown(), state = { value: undefined as unknown }, pictures = memoryPictures()) {
  const made = await begin({ shown: first, answers, state });
  let ids = 0;
  const made2 = createBox(made.store, pictures, () => `p${(ids += 1)}`);
  await made2.ready;
  await settle();
  const write = (text: string) => made2.edit((draft) => ({ ...draft, text }));
  return { ...made, box: made2, write, state, pictures, text: () => made2.draft.value.text };
}

const started = (sessionId = "s1") => () => ({ sessionId, outcome: "started" as const });
const IMAGE: ContentBlock = { type: "image", mimeType: "image/png", data: "iVBORw0KGgo=" };

describe("the prompt box", () => {
  it("sends what was written with an id of its own, and is empty then", async () => {
    const { box: it, write, host, text } = await box({ prompt: started() });
    write("Fix it");
    await it.send("steer");
    expect(host.asked("prompt")).toEqual([{ sessionId: "s1", promptId: "p1", prompt: [{ type: "text", text: "Fix it" }], whenBusy: "steer" }]);
    expect([text(), it.sending.value]).toEqual(["", 0]);
  });

  it("sends nothing from an empty box", async () => {
    const { box: it, write, host } = await box();
    write("  \n ");
    await it.send("queue");
    expect(host.asked("prompt")).toEqual([]);
  });

  it("gives a refused prompt back with the reason, before what was written since", async () => {
    let fail = () => {};
    const { box: it, write, text } = await box({
      prompt: () => new Promise((_, reject) => {
        fail = () => reject(Object.assign(new Error("32 prompts wait already."), { kind: "queueFull", hint: "Remove one." }));
      }),
    });
    write("First");
    const sent = it.send("queue");
    await settle();
    write("Second");
    fail();
    await sent;
    expect(text()).toBe("First\n\nSecond");
    expect(it.trouble.value).toEqual({ kind: "queueFull", message: "32 prompts wait already.", hint: "Remove one.", command: false });
  });

  it("sends again with the same id, so that it cannot run twice, and with another once it was changed", async () => {
    const { box: it, write, host } = await box({ prompt: () => refuse() });
    write("Fix it");
    await it.send("queue");
    await it.send("queue");
    write("Fix it, please");
    await it.send("queue");
    expect(host.asked("prompt").map((params) => params.promptId).reverse()).toEqual(["p1", "p1", "p2"]);
  });

  it("can send as a text what no command is called", async () => {
    const { box: it, write, host } = await box({ prompt: () => refuse({ kind: "invalidParams" }) });
    write("/etc is full");
    await it.send("queue");
    expect(it.trouble.value).toMatchObject({ command: true });
    host.answers.prompt = started();
    await it.send("queue", "text");
    expect(host.asked("prompt")[0]!.prompt).toEqual([{ type: "text", text: "/etc is full" }]);
    expect(it.trouble.value).toBeNull();
  });

  it("keeps a draft for each session", async () => {
    const { store, write, text } = await box();
    write("for s1");
    store.show(shown({}, { sessionId: "s2" }));
    expect(text()).toBe("");
    write("for s2");
    store.show(shown());
    expect(text()).toBe("for s1");
  });

  it("takes what was written meanwhile into the session that begins with the first prompt", async () => {
    let answer = (_: { sessionId: string; outcome: "started" }) => {};
    const { box: it, write, text, host } = await box({ prompt: () => new Promise((resolve) => (answer = resolve)) }, null);
    write("First");
    const sent = it.send("queue");
    await settle();
    expect(host.asked("prompt")[0]).not.toHaveProperty("sessionId");
    write("Second");
    host.tell({ type: "session", shown: shown() });
    expect(text()).toBe("Second");
    answer({ sessionId: "s1", outcome: "started" });
    await sent;
    expect(text()).toBe("Second");
  });

  it("has all of it again where the session ends with its first prompt, which was refused", async () => {
    let fail = () => {};
    const { box: it, write, text, host } = await box({ prompt: () => new Promise((_, reject) => (fail = () => reject(new Error("No model.")))) }, null);
    write("First");
    const sent = it.send("queue");
    await settle();
    host.tell({ type: "session", shown: shown({ messages: [] }) });
    write("Second");
    host.tell({ type: "session", shown: null });
    fail();
    await sent;
    expect(text()).toBe("First\n\nSecond");
    expect(it.trouble.value?.message).toBe("No model.");
  });

  it("has steers again that were not said yet when it interrupted", async () => {
    const { box: it, write, text } = await box({ prompt: () => ({ sessionId: "s1", outcome: "started", restored: [[{ type: "text", text: "a steer" }]] }) });
    write("now this");
    await it.send("interrupt");
    expect(text()).toBe("a steer");
  });

  it("stops and has what waited in the box again", async () => {
    const { box: it, write, text, host } = await box({ cancel: () => ({ restored: [[{ type: "text", text: "one" }], [{ type: "command", name: "diff", arguments: "" }]] }) });
    write("mine");
    await it.stop();
    expect(text()).toBe("one\n\n/diff\n\nmine");
    expect(host.asked("cancel")).toEqual([{ sessionId: "s1" }]);
    await it.stop(true);
    expect(host.asked("cancel")[0]).toEqual({ sessionId: "s1", keepQueue: true });
  });

  it("takes what the editor adds, and a text from it, without losing its own", async () => {
    const { box: it, write, host, text } = await box();
    write("mine");
    host.tell({ type: "attach", attachments: [{ label: "a.ts", block: { type: "resource", uri: "file:///shop/a.ts" } }] });
    host.tell({ type: "draft", text: "Explain this" });
    expect(text()).toBe("mine\n\nExplain this");
    expect(it.draft.value.chips.map((chip) => chip.label)).toEqual(["a.ts"]);
    expect(it.focus.value.count).toBe(2);
  });

  it("remembers what was sent, in other sessions too", async () => {
    const { box: it, write, store } = await box({ prompt: started() });
    write("Fix it");
    await it.send("queue");
    store.show(shown({ messages: [] }, { sessionId: "s2" }));
    expect(it.history.value.entries).toEqual(["Fix it"]);
  });
});

describe("a view that is reloaded", () => {
  it("has its drafts again, with their images, which are kept beside its state", async () => {
    const { box: it, write, state, pictures } = await box();
    write("Look");
    it.edit((draft) => attach(draft, [{ label: "a.png", block: IMAGE }]));
    await settle();
    expect(JSON.stringify(state.value)).not.toContain("iVBORw0KGgo=");
    const again = await box({}, shown(), state, pictures);
    expect(again.text()).toBe("Look");
    expect(again.box.draft.value.chips).toEqual([{ label: "a.png", block: IMAGE }]);
  });

  it("says which images could not be kept", async () => {
    const { box: it, state } = await box();
    it.edit((draft) => attach({ ...draft, text: "Look" }, [{ label: "a.png", block: IMAGE }]));
    await settle();
    const again = await box({}, shown(), state, memoryPictures());
    expect(again.text()).toBe("Look");
    expect(again.box.trouble.value?.message).toContain("a.png");
  });

  it("has what was on its way in the box, with the id it was sent with", async () => {
    const { box: it, write, state } = await box({ prompt: () => new Promise(() => {}) });
    write("Fix it");
    void it.send("queue");
    await settle();
    const again = await box({ prompt: started() }, shown(), state);
    expect(again.text()).toBe("Fix it");
    await again.box.send("queue");
    expect(again.host.asked("prompt")[0]!.promptId).toBe("p1");
  });

  it("does not have it again where it arrived", async () => {
    const { box: it, write, state } = await box({ prompt: () => new Promise(() => {}) });
    write("Why does it fail?");
    void it.send("queue");
    await settle();
    expect((await box({}, shown(), state)).text()).toBe("");
    const queued = shown({ messages: [], queue: [{ promptId: "p1", kind: "queue", prompt: [{ type: "text", text: "edited since" }], queuedAt: "" }] });
    expect((await box({}, queued, state)).text()).toBe("");
  });

  it("has the first prompt of a session that never began again", async () => {
    const { box: it, write, state } = await box({ prompt: () => new Promise(() => {}) }, null);
    write("Begin");
    void it.send("queue");
    await settle();
    expect((await box({}, null, state)).text()).toBe("Begin");
    expect((await box({}, shown({ messages: [{ role: "user", messageId: "m", content: [{ type: "text", text: "Begin" }], timestamp: "" }] }), state)).text()).toBe("");
  });
});
