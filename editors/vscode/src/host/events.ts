/** All that happens in sessions, in order: each durable event goes to every listener once. */
import { EventEmitter, type Disposable } from "vscode";
import type { EventNotification } from "../shared/wire";
import type { Wire } from "./daemon";

export class Events implements Disposable {
  private readonly seqs = new Map<string, number>();
  /** Sub-agents that run: what introduced each. */
  private readonly children = new Map<string, { parent: string; introduced: EventNotification }>();
  private readonly happened = new EventEmitter<EventNotification>();
  private readonly missed = new EventEmitter<string>();
  private readonly source: Disposable;

  constructor(client: Wire) {
    this.source = client.onNotification<EventNotification>("agentd/event", (event) => this.take(event));
  }

  readonly on = this.happened.event;
  /** A session some of whose events never came: it has to be read anew. */
  readonly onGap = this.missed.event;

  /** The number of the last durable event that is known of a session; 0 where none is. */
  seq(sessionId: string): number {
    return this.seqs.get(sessionId) ?? 0;
  }

  /** What a snapshot holds has been told: it does not come again. */
  known(sessionId: string, seq: number): void {
    this.seqs.set(sessionId, seq);
  }

  /** The session whose sub-agent this one is, as long as that runs. */
  parentOf(sessionId: string): string | null {
    return this.children.get(sessionId)?.parent ?? null;
  }

  /** The events that introduced the sub-agents which run in a session. */
  introductions(sessionId: string): EventNotification[] {
    return [...this.children.values()].filter((child) => child.parent === sessionId).map((child) => child.introduced);
  }

  /** The daemon has ended, and with it all that ran. */
  reset(): void {
    this.children.clear();
  }

  take(event: EventNotification): void {
    const { sessionId, seq } = event;
    if (seq !== undefined) {
      const last = this.seqs.get(sessionId);
      if (last !== undefined && seq <= last) return;
      this.seqs.set(sessionId, seq);
      if (last !== undefined && seq > last + 1) this.missed.fire(sessionId);
    }
    const parent = event.event.type === "session_changed" ? event.event.session.parent?.sessionId : undefined;
    if (parent !== undefined) this.children.set(sessionId, { parent, introduced: event });
    this.happened.fire(event);
    if (event.event.type === "agent_end") this.children.delete(sessionId);
  }

  dispose(): void {
    this.source.dispose();
    this.happened.dispose();
    this.missed.dispose();
  }
}
