/** The sessions beside the shown one that run or wait for an answer: all that is kept of them. */
import { Disposable } from "vscode";
import type { ToView } from "../shared/messages";
import type { EventNotification, Session } from "../shared/wire";
import type { Events } from "./events";

type State = Session["state"];
type Told = Extract<ToView, { type: "others" }>["sessions"];

export class Others implements Disposable {
  private readonly states = new Map<string, { state: State; questions: Set<string> }>();
  private readonly titles = new Map<string, string>();
  private readonly children = new Set<string>();
  private told = "[]";
  private readonly source: Disposable;

  constructor(events: Events, private readonly post: (message: ToView) => void, private readonly shown: () => string | null) {
    this.source = events.on((event) => this.take(event));
  }

  /** A session was seen, in a list or a snapshot. */
  learn(session: Session): void {
    this.titles.set(session.sessionId, session.title);
    if (session.parent !== undefined) this.children.add(session.sessionId);
  }

  /** The daemon has ended, and with it all that ran. */
  reset(): void {
    this.states.clear();
    this.tell();
  }

  forget(sessionId: string): void {
    this.states.delete(sessionId);
    this.tell();
  }

  /** Tells the view where something changed, or `anew` one that knows nothing. */
  tell(anew = false): void {
    const sessions: Told = [];
    for (const [sessionId, { state }] of this.states) {
      if (sessionId === this.shown() || this.children.has(sessionId)) continue;
      sessions.push({ sessionId, title: this.titles.get(sessionId) ?? "", state });
    }
    const text = JSON.stringify(sessions);
    if (text === this.told && !anew) return;
    this.told = text;
    this.post({ type: "others", sessions });
  }

  dispose(): void {
    this.source.dispose();
  }

  private take({ sessionId, event }: EventNotification): void {
    const known = this.states.get(sessionId);
    switch (event.type) {
      case "session_changed":
        this.learn(event.session);
        break;
      case "agent_start":
        this.states.set(sessionId, { state: "running", questions: new Set() });
        break;
      case "permission_requested":
        known?.questions.add(event.requestId);
        break;
      case "permission_resolved":
        known?.questions.delete(event.requestId);
        break;
      case "agent_end":
        this.states.delete(sessionId);
        break;
      default:
        return;
    }
    if (known !== undefined) known.state = known.questions.size > 0 ? "waiting" : "running";
    this.tell();
  }
}
