/** The daemon as the rest of the host sees it: one for the window, whatever process it is at the moment. */
import type { CancellationToken, Disposable } from "vscode";
import type { Connection } from "../shared/messages";

/** What the daemon said of itself in `initialize`. */
export interface Announced {
  protocol: number;
  version: string;
  methods: string[];
  features: Record<string, boolean>;
}

/** What may be said to the daemon and heard of it. Handlers outlive its restarts. */
export interface Wire {
  /**
   * Asks the daemon. While it starts the request waits; where it cannot be had, or ends before it answers, this
   * fails with a HostError, and where it answers with an error, with that (`data.kind`, `data.hint`).
   */
  request<R>(method: string, params?: object, token?: CancellationToken): Promise<R>;
  /** Tells the daemon; nobody hears it while there is none. */
  notify(method: string, params: object): void;
  /** Any number of listeners for one notification, in the order in which they came. */
  onNotification<P>(method: string, listener: (params: P) => void): Disposable;
  /** The one who answers a request of the daemon. */
  onRequest<P, R>(method: string, handler: (params: P, token: CancellationToken) => R | Promise<R>): Disposable;
}

export interface Daemon extends Wire {
  readonly connection: Connection;
  /** Called whenever `connection` changed. */
  onConnection(listener: (connection: Connection) => void): Disposable;
  /** Null while there is none. */
  readonly announced: Announced | null;
}
