/** A daemon that the test plays: what it is asked waits for the test's answer. */
import type { CancellationToken } from "vscode";
import type { Wire } from "../../src/host/daemon";
import type { Event, EventNotification } from "../../src/shared/wire";
import { Disposable } from "./vscode";

export interface Asked {
  method: string;
  params: Record<string, unknown>;
  answer(result: unknown): void;
  fail(error: unknown): void;
}

export class PlayedDaemon implements Wire {
  readonly asked: Asked[] = [];
  readonly told: [string, object][] = [];
  /** Answers given at once, by method. */
  readonly known = new Map<string, (params: never) => unknown>();
  private readonly listeners = new Map<string, Set<(params: never) => void>>();
  private readonly handlers = new Map<string, (params: never, token: CancellationToken) => unknown>();

  request<R>(method: string, params: object = {}): Promise<R> {
    const known = this.known.get(method);
    if (known !== undefined) return Promise.resolve(known(params as never) as R);
    return new Promise((resolve, reject) => {
      this.asked.push({ method, params: params as Record<string, unknown>, answer: (result) => resolve(result as R), fail: reject });
    });
  }

  notify(method: string, params: object): void {
    this.told.push([method, params]);
  }

  onNotification<P>(method: string, listener: (params: P) => void): Disposable {
    const all = this.listeners.get(method) ?? new Set();
    this.listeners.set(method, all.add(listener as (params: never) => void));
    return new Disposable(() => all.delete(listener as (params: never) => void));
  }

  onRequest<P, R>(method: string, handler: (params: P, token: CancellationToken) => R | Promise<R>): Disposable {
    this.handlers.set(method, handler as (params: never, token: CancellationToken) => unknown);
    return new Disposable(() => this.handlers.delete(method));
  }

  says(method: string, params: object): void {
    for (const listener of [...(this.listeners.get(method) ?? [])]) listener(params as never);
  }

  asks(method: string, params: object, token: unknown): Promise<unknown> {
    return Promise.resolve(this.handlers.get(method)?.(params as never, token as CancellationToken));
  }

  event(sessionId: string, seq: number | undefined, event: object, promptId?: string): void {
    const note: EventNotification = {
      sessionId, time: "2026-01-01T00:00:00.000Z", event: event as Event,
      ...(seq === undefined ? {} : { seq }), ...(promptId === undefined ? {} : { promptId }),
    };
    this.says("agentd/event", note);
  }

  /** The next request that nobody has taken, once it is there. */
  async next(method: string): Promise<Asked> {
    for (let turn = 0; turn < 1000; turn++) {
      const at = this.asked.findIndex((each) => each.method === method);
      if (at >= 0) return this.asked.splice(at, 1)[0] as Asked;
      await Promise.resolve();
    }
    throw new Error(`nobody asked for ${method}, but for ${this.asked.map((each) => each.method).join(", ")}`);
  }
}
