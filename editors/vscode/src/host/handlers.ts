/** How calls of the view are answered, and how they fail. */
import type { CallError, CallName, Params, Result } from "../shared/messages";

/** One function for each call of the view. What it throws becomes the call's CallError (`toCallError`). */
export type Handlers = { [N in CallName]: (params: Params<N>) => Result<N> | Promise<Result<N>> };

/** A failure that the user can be told as it is: what is wrong, and in `hint` the way out. */
export class HostError extends Error {
  readonly kind: string;
  readonly hint: string | undefined;

  constructor(message: string, options: { kind?: string; hint?: string; cause?: unknown } = {}) {
    super(message, { cause: options.cause });
    this.name = "HostError";
    this.kind = options.kind ?? "host";
    this.hint = options.hint;
  }
}

/** Ways out that the daemon cannot know. */
const HINTS: Record<string, string> = {
  sessionLocked: "Close it in the other window or program, or fork it to go on here.",
};

/** What the daemon's errors carry in `data`. */
interface ErrorData {
  kind?: unknown;
  hint?: unknown;
}

/** A failure in the words of the view: a HostError, an error answer of the daemon, or anything else thrown. */
export function toCallError(error: unknown): CallError {
  if (error instanceof HostError) {
    return { kind: error.kind, message: error.message, ...(error.hint === undefined ? {} : { hint: error.hint }) };
  }
  const message = error instanceof Error ? error.message : String(error);
  const data = (error as { data?: ErrorData } | null)?.data;
  if (typeof data?.kind === "string") {
    const hint = typeof data.hint === "string" ? data.hint : HINTS[data.kind];
    return { kind: data.kind, message, ...(hint === undefined ? {} : { hint }) };
  }
  return { kind: "host", message };
}
