/**
 * The conversation. Only what can be seen, and a little around it, is in the page: `useRows` says what and where.
 * It follows its end while the user is there, and stays where the user is otherwise.
 */
import type { RefObject } from "preact";
import { useCallback, useEffect, useMemo, useRef, useState } from "preact/hooks";
import { useStore } from "../model/store";
import { Announcer } from "./announcer";
import { useClicks } from "./clicks";
import { EntryRow, isShown } from "./entries";
import { FindBar } from "./find-bar";
import { isLive, Live } from "./live";
import { useRows } from "./rows";

export function Transcript() {
  const store = useStore();
  const view = store.session.value!;
  const box = useRef<HTMLDivElement>(null);
  const shown = useMemo(() => view.entries.filter(isShown), [view.entries]);
  const live = isLive(view);
  const keys = useSame([...(view.hasMore ? ["earlier"] : []), ...shown.map((entry) => entry.id), ...(live ? ["live"] : [])]);
  const rows = useRows(box, keys, view.session.sessionId);
  const before = view.hasMore ? 1 : 0;
  useClicks(box);
  const [failed, again] = useEarlier(box, rows.top);
  return (
    <div class="transcript">
      <div class="scroll" ref={box} role="log" aria-label="Conversation" aria-live="off" tabIndex={0}>
        <div class="rows" ref={rows.size}>
          <div class="window" ref={rows.place}>
            {rows.items.map(({ key, index }) => {
              const entry = shown[index - before];
              return (
                <div key={key} class="row" data-index={index} data-key={key} ref={rows.measure}>
                  {key === "earlier" ? (
                    <div class="mark">
                      {failed ? <button type="button" class="link" onClick={again}>Load earlier messages</button> : "Loading earlier messages…"}
                    </div>
                  )
                    : entry ? <EntryRow entry={entry} isLast={index - before === shown.length - 1 && !live} />
                    : <Live view={view} />}
                </div>
              );
            })}
          </div>
        </div>
      </div>
      <FindBar box={box} entries={shown} show={rows.show} />
      {!rows.atEnd && (
        <button type="button" class="jump" onClick={rows.toEnd} aria-label="Jump to latest" title="Jump to latest">
          <span class="codicon codicon-arrow-down" aria-hidden="true" />
        </button>
      )}
      <Announcer view={view} />
    </div>
  );
}

/** The list given before while it holds the same: most drawings change what a row shows and not which there are. */
function useSame(list: string[]): readonly string[] {
  const kept = useRef(list);
  if (kept.current.length !== list.length || kept.current.some((key, index) => key !== list[index])) kept.current = list;
  return kept.current;
}

/** Who comes near to the beginning gets what was before, page by page. Where that failed it is asked for by hand: true. */
function useEarlier(box: RefObject<HTMLElement | null>, top: number): [failed: boolean, again: () => void] {
  const store = useStore();
  const [failed, setFailed] = useState(false);
  const now = useRef({ top, failed });
  now.current = { top, failed };
  const load = useCallback(() => void store.earlier().then((came) => {
    setFailed(!came && store.session.peek()?.hasMore === true);
    if (came) requestAnimationFrame(look);
  }), [store]);
  const look = useCallback(() => {
    const element = box.current;
    // The first drawing is of the beginning, and only then of the end: where it is scrolled to counts as well.
    const isNear = element !== null && now.current.top <= 2 && element.scrollTop <= 2 * element.clientHeight;
    if (isNear && !now.current.failed && store.session.peek()?.hasMore) load();
  }, [store]);
  useEffect(look);
  return [failed, load];
}
