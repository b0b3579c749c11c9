import type { Session } from "../../shared/wire";
import type { SessionView } from "./view";

/** A session of which nothing has happened yet. */
export function emptyView(session: Session): SessionView {
  return {
    session, seq: 0, gap: false, state: session.state, run: null, entries: [], oldest: undefined, hasMore: false, pending: [],
    queue: [], todo: [], compacting: null, children: {}, rewound: [], loose: [],
  };
}
