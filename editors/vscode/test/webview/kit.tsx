/** The view without VS Code: a host that answers as a test says, and what the tests' sessions look like. */
import { render } from "@testing-library/preact";
import userEvent from "@testing-library/user-event";
import type { ComponentChild } from "preact";
import type { CallError, CallName, Calls, Params, Result, Shown, Surroundings } from "../../src/shared/messages";
import type { PermissionRequest, Session, SessionGetResult } from "../../src/shared/wire";
import { CallFailure, type Host, type Notice } from "../../src/webview/host";
import { createStore, StoreContext, type Store } from "../../src/webview/model/store";

export type Answers = { [N in CallName]?: (params: Params<N>) => Result<N> | Promise<Result<N>> };

export interface FakeHost extends Host {
  answers: Answers;
  log: { [N in CallName]: [N, Params<N>] }[CallName][];
  /** What a call was made with, the last one first. */
  asked<N extends CallName>(name: N): Params<N>[];
  tell(notice: Notice): void;
  state: { value: unknown };
}

export function refuse(error: Partial<CallError> = {}): never {
  throw new CallFailure({ kind: "host", message: "It is refused.", ...error });
}

export function fakeHost(answers: Answers = {}, state: { value: unknown } = { value: undefined }): FakeHost {
  const listeners: ((notice: Notice) => void)[] = [];
  const host: FakeHost = {
    answers: { cancel: () => ({ restored: [] }), complete: () => [], ...answers }, log: [], state,
    async call(name, params) {
      host.log.push([name, params] as never);
      const answer = host.answers[name] as ((params: unknown) => unknown) | undefined;
      return (await answer?.(params) ?? {}) as Result<typeof name>;
    },
    asked: (name) => host.log.filter(([other]) => other === name).map(([, params]) => params).reverse() as never,
    listen: (listener) => void listeners.push(listener),
    tell: (notice) => listeners.forEach((listener) => listener(notice)),
    load: () => state.value,
    save: (value) => {
      state.value = JSON.parse(JSON.stringify(value));
    },
  };
  return host;
}

export const SURROUNDINGS: Surroundings = {
  connection: { state: "ready", version: "0.1.0", program: "agentd" }, trusted: true,
  folders: [{ uri: "file:///shop", name: "shop" }], folder: "file:///shop",
  models: [
    { id: "anthropic/large", provider: "anthropic", name: "large", contextWindow: 200_000, images: true, reasoning: true, efforts: ["low", "high"], available: true },
    { id: "openai/big", provider: "openai", name: "big", images: false, reasoning: false, efforts: [], available: false, reason: "No key for openai." },
  ],
  defaultModel: "anthropic/large", modes: ["plan", "ask", "edit"], defaultMode: "ask",
  commands: [{ name: "help", description: "The commands", source: "built-in" }], problems: [], keys: ["anthropic"], whenRunning: "steer", reduceMotion: false,
};

export const SESSION: Session = {
  sessionId: "s1", workspaceUri: "file:///shop", title: "Fix the test", model: "anthropic/large", mode: "ask", state: "idle",
  createdAt: "2026-11-30T18:00:00.000Z", updatedAt: "2026-11-30T18:01:00.000Z", messageCount: 1, seq: 5,
};

export function shown(over: Partial<SessionGetResult> = {}, session: Partial<Session> = {}): Shown {
  return {
    snapshot: {
      session: { ...SESSION, ...session }, seq: 5, hasMore: false, pending: [], queue: [], todo: [],
      messages: [{ role: "user", messageId: "m1", content: [{ type: "text", text: "Why does it fail?" }], timestamp: SESSION.createdAt }],
      ...over,
    },
    changes: [],
  };
}

export function question(over: Partial<PermissionRequest> = {}): PermissionRequest {
  return {
    sessionId: "s1", promptId: "p1", requestId: "r1", toolCallId: "c1", toolName: "bash", title: "Run npm test", kind: "execute",
    subject: { type: "command", command: "npm test", cwd: "/shop" },
    options: [
      { optionId: "allow_once", label: "Allow once", kind: "allow_once", scope: "once" },
      { optionId: "allow_always", label: "Allow for this session", kind: "allow_always", scope: "session", rule: "npm test with any arguments" },
      { optionId: "reject_once", label: "Reject", kind: "reject_once", scope: "once" },
    ],
    ...over,
  };
}

interface Setting { around?: Partial<Surroundings>; shown?: Shown | null; answers?: Answers; state?: { value: unknown } }

/** A store that has said hello to its host. */
export async function begin({ around = {}, shown: first = null, answers = {}, state }: Setting = {}): Promise<{ store: Store; host: FakeHost }> {
  const host = fakeHost({ ready: () => ({ surroundings: { ...SURROUNDINGS, ...around }, shown: first }), ...answers }, state);
  const store = createStore(host, (work) => queueMicrotask(work));
  await store.begin();
  return { store, host };
}

/** Draws a part of the view in it. */
export async function draw(part: ComponentChild, setting: Setting = {}) {
  const { store, host } = await begin(setting);
  const page = render(<StoreContext.Provider value={store}>{part}</StoreContext.Provider>);
  await settle();
  return { store, host, page, user: userEvent.setup() };
}

/** Lets what was asked be answered and drawn. */
export async function settle(): Promise<void> {
  for (let round = 0; round < 6; round++) await new Promise((resolve) => setTimeout(resolve, 0));
}

export type { Calls };
