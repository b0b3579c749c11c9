import type { Mode } from "../../shared/wire";

/** What each mode lets the agent do unasked, from the strictest to the freest. */
export const MODES: Record<Mode, { label: string; icon: string; means: string }> = {
  plan: { label: "Plan", icon: "book", means: "Reads only. Nothing is written or run." },
  ask: { label: "Ask", icon: "question", means: "Reads freely. Asks before each edit and command." },
  edit: { label: "Edit", icon: "edit", means: "Edits files here freely. Asks before commands." },
  auto: { label: "Auto", icon: "zap", means: "Edits freely, and runs commands inside the sandbox. Asks for what leads out of it." },
  full: { label: "Full", icon: "warning", means: "Never asks. Everything is allowed." },
};

export const ORDER: readonly Mode[] = ["plan", "ask", "edit", "auto", "full"];

/** Why a mode that there is cannot be chosen here. */
export const NOT_HERE: Partial<Record<Mode, string>> = {
  auto: "Needs a sandbox, which cannot be had where commands run here.",
};
