/**
 * The conversation. Only what can be seen, and a little around it, is in the page: `useRows` says what and where.
 * It follows its end while the user is there, and stays where the user is otherwise.
 */
import { useEffect, useMemo, useRef } from "preact/hooks";
import { useStore } from "../model/store";
import { Announcer } from "./announcer";
import { useClicks } from "./clicks";
import { EntryRow, isShown } from "./entries";
import { isLive, Live } from "./live";
import { useRows } from "./rows";

export function Transcript() {
  const store = useStore();
  const view = store.session.value!;
  const box = useRef<HTMLDivElement>(null);
  const shown = useMemo(() => view.entries.filter(isShown), [view.entries]);
  const live = isLive(view);
  const keys = useMemo(() => [...(view.hasMore ? ["earlier"] : []), ...shown.map((entry) => entry.id), ...(live ? ["live"] : [])], [shown, live, view.hasMore]);
  const rows = useRows(box, keys, view.session.sessionId);
  const before = view.hasMore ? 1 : 0;
  useClicks(box);
  // Who comes near to the beginning wants what was before. (A first drawing is of the beginning, and then of the end.)
  const isNear = rows.top <= 2;
  useEffect(() => {
    if (view.hasMore && isNear && box.current!.scrollTop < 2 * box.current!.clientHeight) void store.earlier();
  }, [view.hasMore, isNear, view.oldest]);
  return (
    <div class="transcript">
      <div class="scroll" ref={box} role="log" aria-label="Conversation" aria-live="off" tabIndex={0}>
        <div class="rows" ref={rows.size}>
          <div class="window" ref={rows.place}>
            {rows.items.map(({ key, index }) => {
              const entry = shown[index - before];
              return (
                <div key={key} class="row" data-index={index} ref={rows.measure}>
                  {key === "earlier" ? <div class="mark">Loading earlier messages…</div>
                    : entry ? <EntryRow entry={entry} isLast={index - before === shown.length - 1 && !live} />
                    : <Live view={view} />}
                </div>
              );
            })}
          </div>
        </div>
      </div>
      {!rows.atEnd && (
        <button type="button" class="jump" onClick={rows.toEnd} aria-label="Jump to latest" title="Jump to latest">
          <span class="codicon codicon-arrow-down" aria-hidden="true" />
        </button>
      )}
      <Announcer view={view} />
    </div>
  );
}
