/** What of a session follows from its events without being told: its title and what it has used. */
import type { Session, Usage, UserMessage } from "../../shared/wire";

const TITLE_LENGTH = 72;

/** A session without a title is called after the first line with words that the user said. */
export function titled(session: Session, message: UserMessage): Session {
  if (session.title !== "") return session;
  const lines = message.content.flatMap((block) => (block.type === "text" ? block.text.split("\n") : block.type === "command" ? [`/${block.name} ${block.arguments}`] : []));
  const line = lines.map((each) => each.replace(/^[\s#>*+-]+/, "").replace(/[*`_]+/g, "").trim()).find((each) => /[\p{L}\p{N}]/u.test(each));
  if (line === undefined) return session;
  return { ...session, title: line.length <= TITLE_LENGTH ? line : `${line.slice(0, TITLE_LENGTH - 1).trimEnd()}…` };
}

/** With what a run has used. */
export function spent(session: Session, usage: Usage | undefined): Session {
  return usage ? { ...session, usage: session.usage ? sum(session.usage, usage) : usage } : session;
}

function sum(a: Usage, b: Usage): Usage {
  const added = (name: "input" | "output" | "cacheRead" | "cacheWrite" | "reasoning" | "total") => a[name] + b[name];
  const window = b.contextWindow ?? a.contextWindow;
  return {
    input: added("input"), output: added("output"), cacheRead: added("cacheRead"), cacheWrite: added("cacheWrite"),
    reasoning: added("reasoning"), total: added("total"), contextTokens: b.contextTokens,
    ...(window === undefined ? {} : { contextWindow: window }),
    ...(a.cost || b.cost ? { cost: { total: (a.cost?.total ?? 0) + (b.cost?.total ?? 0), currency: "USD" } } : {}),
  };
}

/** How full the context window is behind a turn; what was used is counted at the end of the run. */
export function filled(session: Session, usage: Usage | undefined): Session {
  if (!usage || !session.usage) return session;
  const { contextTokens, contextWindow = session.usage.contextWindow } = usage;
  return { ...session, usage: { ...session.usage, contextTokens, ...(contextWindow === undefined ? {} : { contextWindow }) } };
}
