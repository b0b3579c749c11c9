/** The wire to the extension host: calls, each answered once, and what the host says by itself. */
import type { CallError, CallName, FromView, Params, Result, ToView } from "../shared/messages";

/** What VS Code gives a webview; absent in the preview page, which brings its own. */
interface VsCodeApi {
  postMessage(message: unknown): void;
  getState(): unknown;
  setState(state: unknown): void;
}
declare function acquireVsCodeApi(): VsCodeApi;

/** A call that failed, with the host's words. Nothing has changed then. */
export class CallFailure extends Error {
  readonly kind: string;
  readonly hint: string | undefined;
  constructor(error: CallError) {
    super(error.message);
    this.name = "CallFailure";
    this.kind = error.kind;
    this.hint = error.hint;
  }
}

export type Notice = Exclude<ToView, { type: "answer" } | { type: "failure" }>;

export interface Host {
  /** Raises `CallFailure`. */
  call<N extends CallName>(name: N, params: Params<N>): Promise<Result<N>>;
  listen(listener: (notice: Notice) => void): void;
  /** What the view kept when it was hidden or reloaded. */
  load(): unknown;
  save(state: unknown): void;
}

export function connect(): Host {
  const api = acquireVsCodeApi();
  const waiting = new Map<number, { resolve(result: unknown): void; reject(error: Error): void }>();
  const listeners: ((notice: Notice) => void)[] = [];
  let last = 0;

  window.addEventListener("message", ({ data }: MessageEvent<ToView>) => {
    if (data.type !== "answer" && data.type !== "failure") {
      for (const listener of listeners) listener(data);
      return;
    }
    const call = waiting.get(data.id);
    waiting.delete(data.id);
    if (data.type === "answer") call?.resolve(data.result);
    else call?.reject(new CallFailure(data.error));
  });

  return {
    call<N extends CallName>(name: N, params: Params<N>) {
      const id = ++last;
      return new Promise<Result<N>>((resolve, reject) => {
        waiting.set(id, { resolve: resolve as (result: unknown) => void, reject });
        api.postMessage({ id, call: name, params } as FromView);
      });
    },
    listen: (listener) => void listeners.push(listener),
    load: () => api.getState(),
    save: (state) => api.setState(state),
  };
}
