/**
 * A host without VS Code: answers the view's calls out of a recording and plays its events. What the page is asked to
 * show stands in its address: recording, speed (events per second; 0: all at once), upTo (so many events), theme,
 * snapshot (begin with the whole session; `bare`: without its events), page (so many messages at a time).
 */
import type { CallError, Change, FromView, Surroundings, ToView } from "../../src/shared/messages";
import type { EventNotification, Session, SessionGetResult } from "../../src/shared/wire";

declare global {
  interface Window {
    acquireVsCodeApi(): unknown;
    /** For tests: what the view asked for, and a way to say something to it. */
    preview: { calls: FromView[]; say(message: ToView): void; recording: Recording };
  }
}

interface Recording {
  sessionId: string;
  events: EventNotification[];
  snapshot: SessionGetResult;
  /** What is otherwise than usual around it. */
  surroundings?: Partial<Surroundings>;
  changes?: Change[];
  others?: Extract<ToView, { type: "others" }>["sessions"];
  /** No session is shown. */
  none?: boolean;
  /** Answers to calls, by name; `{failure}` for one that fails. */
  answers?: Record<string, unknown>;
}

const wish = new URLSearchParams(location.search);
const size = Number(wish.get("page") ?? Infinity);
const calls: FromView[] = [];
const say = (message: ToView) => window.postMessage(message, "*");
const loaded = fetch(`/fixtures/${wish.get("recording") ?? "demo"}.json`).then((answer) => answer.json() as Promise<Recording>);

const surroundings: Surroundings = {
  connection: { state: "ready", version: "0.1.0", program: "agentd" }, trusted: true,
  folders: [{ uri: "file:///home/user/project/workspace", name: "workspace" }], folder: "file:///home/user/project/workspace",
  models: [{ id: "scripted/demo", provider: "scripted", name: "demo", images: false, reasoning: false, efforts: [], available: true }],
  defaultModel: "scripted/demo", modes: ["plan", "ask", "edit", "auto"], defaultMode: "ask", whenRunning: "steer", commands: [], problems: [], keys: [], reduceMotion: false,
};

const usual: Record<string, unknown> = { complete: [], attach: [], children: { children: [] }, sessions: { sessions: [] }, cancel: { restored: [] }, revert: { files: [] } };

window.acquireVsCodeApi = () => ({
  getState: () => JSON.parse(sessionStorage.getItem("state") ?? "null") as unknown,
  setState: (state: unknown) => sessionStorage.setItem("state", JSON.stringify(state)),
  postMessage: (message: FromView) => {
    calls.push(message);
    void answer(message);
  },
});

async function answer(message: FromView): Promise<void> {
  const recording = await loaded;
  if (message.call === "ready") {
    const { usage: _, ...told } = recording.snapshot.session;
    const session: Session = { ...told, title: "", state: "idle", seq: 0 };
    const whole = wish.has("snapshot");
    const first = Math.max(0, recording.snapshot.messages.length - size);
    const snapshot = whole ? { ...recording.snapshot, messages: recording.snapshot.messages.slice(first), hasMore: first > 0 } : { ...recording.snapshot, session, messages: [], hasMore: false, pending: [], queue: [], todo: [], seq: 0 };
    const history = whole && wish.get("snapshot") !== "bare" ? recording.events.filter((note) => note.seq !== undefined) : [];
    const around = { ...surroundings, ...recording.surroundings };
    const shown = recording.none ? null : { snapshot, history, changes: recording.changes ?? [] };
    say({ type: "answer", id: message.id, result: { surroundings: around, shown } });
    if (recording.others) say({ type: "others", sessions: recording.others });
    if (!whole) void play(recording);
  } else if (message.call === "earlier") say({ type: "answer", id: message.id, result: earlier(recording, message.params.before) });
  else {
    const said = (recording.answers?.[message.call] ?? usual[message.call] ?? {}) as { failure?: CallError };
    if (said.failure) say({ type: "failure", id: message.id, error: said.failure });
    else say({ type: "answer", id: message.id, result: said });
  }
}

function earlier({ snapshot: { messages } }: Recording, before: string) {
  const end = messages.findIndex((message) => message.messageId === before);
  const start = Math.max(0, end - size);
  return { messages: messages.slice(start, end), hasMore: start > 0 };
}

async function play(recording: Recording): Promise<void> {
  const speed = Number(wish.get("speed") ?? 0);
  const events = recording.events.slice(0, Number(wish.get("upTo") ?? Infinity));
  const send = (some: EventNotification[]) => say({ type: "events", sessionId: recording.sessionId, events: some });
  if (speed === 0) return send(events);
  for (const event of events) {
    send([event]);
    await new Promise((resolve) => setTimeout(resolve, 1000 / speed));
  }
}

void loaded.then((recording) => {
  window.preview = { calls, say, recording };
});
