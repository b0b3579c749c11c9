/** What of LSP's own ways is done otherwise where there is a chat. */
import type { Disposable } from "vscode";
import type { Middleware } from "vscode-languageclient/node";
import type { EventNotification } from "../shared/wire";

/** Documents that the daemon shows at the end of a prompt: the chat shows them better. */
const TRANSCRIPT = /\/shown\/agentd(-\d+)?\.md$/;
/** The command that shows one because the user wants to see it. */
const SHOW_TRANSCRIPT = "agentd.showTranscript";

/**
 * Prompts that code actions and commands begin are shown in the chat, and not told a second time as progress, message
 * and document, as they are in an editor that has no chat.
 */
export class CommandPrompts {
  private readonly begun = new Set<string>();
  private asked = 0;
  /** Prompts that have ended, and whose answer the daemon is about to show by other means. */
  private ended = 0;

  /** `before`: a command is about to be sent, which may begin a prompt; `opened`: one was begun in this session. */
  constructor(private readonly before: () => void, private readonly opened: (sessionId: string) => void) {}

  get middleware(): Middleware {
    return {
      executeCommand: async (command, args, next) => {
        if (command === SHOW_TRANSCRIPT) this.asked++;
        this.before();
        try {
          const result = (await next(command, args)) as { sessionId?: unknown; promptId?: unknown } | null | undefined;
          if (typeof result?.sessionId === "string" && typeof result.promptId === "string") {
            this.begun.add(result.promptId);
            this.opened(result.sessionId);
          }
          return result;
        } finally {
          if (command === SHOW_TRANSCRIPT) this.asked--;
        }
      },
      handleWorkDoneProgress: () => undefined,
      window: {
        showDocument: async (params, token, next) => {
          if (this.asked > 0 || !TRANSCRIPT.test(params.uri)) return next(params, token);
          this.ended = 0;
          return { success: true };
        },
      },
    };
  }

  follow(on: (listener: (event: EventNotification) => void) => Disposable): Disposable {
    return on(({ promptId, event }) => {
      if (event.type !== "agent_end" || promptId === undefined || !this.begun.delete(promptId)) return;
      if (event.error === undefined && event.stopReason !== "aborted" && event.stopReason !== "interrupted") this.ended++;
    });
  }

  /** Whether a message is the answer to such a prompt: it comes before the document, and where it is short only. */
  takesMessage(type: number): boolean {
    if (type !== 3 || this.ended === 0) return false;
    this.ended--;
    return true;
  }
}
