/** The sub-agents of a session's call, read from what agentd keeps of them: they are sessions that name their parent. */
import type { SessionGetResult, SessionListResult } from "../shared/wire";
import type { Wire } from "./daemon";

const PAGE = 200;
/** So many pages of a folder's sessions are looked through: newest first, and children are no older than their parent. */
const PAGES_READ = 20;
const MESSAGES = 1_000;

/** Those of one call, in the order in which they began. Fails as `agentd/session/get` does. */
export async function childrenOf(client: Wire, sessionId: string, toolCallId: string): Promise<SessionGetResult[]> {
  const { session: parent } = await client.request<SessionGetResult>("agentd/session/get", { sessionId, limit: 1 });
  const found: string[] = [];
  let cursor: string | undefined;
  for (let page = 0; page < PAGES_READ; page++) {
    const { sessions, nextCursor } = await client.request<SessionListResult>("agentd/session/list", {
      workspaceUri: parent.workspaceUri, children: true, limit: PAGE, ...(cursor === undefined ? {} : { cursor }),
    });
    for (const { parent: of, sessionId: id } of sessions) if (of?.sessionId === sessionId && of.toolCallId === toolCallId) found.push(id);
    const last = sessions.at(-1);
    if (nextCursor === undefined || last === undefined || last.updatedAt < parent.createdAt) break;
    cursor = nextCursor;
  }
  const children = await Promise.all(found.map((id) => client.request<SessionGetResult>("agentd/session/get", { sessionId: id, limit: MESSAGES })));
  return children.sort((one, other) => (one.session.createdAt < other.session.createdAt ? -1 : 1));
}
