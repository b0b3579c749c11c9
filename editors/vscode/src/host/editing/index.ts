/** The editor side: what a prompt changed, documents, diagnostics, what the user attaches. */
import type { Disposable } from "vscode";
import type { Change, ToView } from "../../shared/messages";
import type { EventNotification, SessionGetResult } from "../../shared/wire";
import type { Wire } from "../daemon";
import { HostError, type Handlers } from "../handlers";

/** What the editor side may use of the rest of the host. */
export interface EditingContext {
  client: Wire;
  /** Tells the view, where there is one. */
  post(message: ToView): void;
  /** The session that is shown, also while the view is hidden. */
  shownSessionId(): string | null;
  /** Every `agentd/event`, of any session, in order, each durable one once. */
  onEvent(listener: (event: EventNotification) => void): Disposable;
  /** Brings the chat to the front. */
  reveal(): Promise<void>;
  /** A line for the output channel. */
  log(message: string): void;
}

export type EditingCalls =
  "complete" | "attach" | "openFile" | "openDiff" | "previewPatch" | "accept" | "revert" | "insertAtCursor";

export interface Editing extends Disposable {
  handlers: Pick<Handlers, EditingCalls>;
  /** What this client answers: goes into `initializationOptions.agentd`. */
  capabilities: { diagnostics: boolean; save: boolean };
  /**
   * The changes of a session that is shown from now on, as far as they are known at once: between the snapshot and
   * the events that follow it nothing may be awaited. What is found out later goes out as a notice `changes`.
   */
  shown(snapshot: SessionGetResult): Change[];
}

export function createEditing(_context: EditingContext): Editing {
  const absent = (): never => {
    throw new HostError("This version of the extension cannot do that.", { kind: "unsupported" });
  };
  return {
    handlers: {
      complete: () => [], attach: () => [], openFile: absent, openDiff: absent, previewPatch: absent,
      accept: absent, revert: absent, insertAtCursor: absent,
    },
    capabilities: { diagnostics: false, save: false },
    shown: () => [],
    dispose: () => undefined,
  };
}
