import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import type { Session } from "../../shared/wire";
import { useStore } from "../model/store";
import { fileName } from "../transcript/words";
import { Icon } from "../ui/icon";
import { ago, SessionListing } from "./listing";

/** All sessions, newest first: found by their words, opened, renamed, forked, exported and deleted. */
export function SessionList({ onDone }: { onDone(): void }) {
  const store = useStore();
  const listing = useMemo(() => new SessionListing(store), [store]);
  const [query, setQuery] = useState("");
  const [renaming, setRenaming] = useState<string | null>(null);
  const self = useRef<HTMLDivElement>(null);
  const { sessions, loading, more, error } = listing.state.value;
  const shown = store.session.value?.session.sessionId;
  const states = new Map(store.others.value.map((one) => [one.sessionId, one.state]));
  useLayoutEffect(() => self.current?.querySelector("input")?.focus({ preventScroll: true }), []);
  useEffect(() => {
    listing.find("");
    return () => listing.close();
  }, [listing]);

  function move(event: KeyboardEvent) {
    if (event.key !== "ArrowDown" && event.key !== "ArrowUp") return;
    const stops = [...self.current!.querySelectorAll<HTMLElement>(".filter input, .session-open, .session-more")];
    const line = (document.activeElement as HTMLElement | null)?.closest("li")?.querySelector<HTMLElement>(".session-open");
    const at = stops.indexOf(line ?? (document.activeElement as HTMLElement));
    event.preventDefault();
    stops[(at + (event.key === "ArrowDown" ? 1 : -1) + stops.length) % stops.length]?.focus();
  }

  async function open(sessionId: string) {
    onDone();
    const found = await store.attempt("open", { sessionId });
    if (found) store.show(found);
  }

  const now = Date.now();
  return (
    <div ref={self} id="session-list" class="session-list" onKeyDown={move}>
      <div class="filter">
        <Icon name="search" />
        <input type="text" role="searchbox" aria-label="Find sessions" placeholder="Find sessions" autocomplete="off" spellcheck={false} value={query} onInput={(event) => {
          setQuery(event.currentTarget.value);
          listing.find(event.currentTarget.value.trim());
        }} />
        {loading && <Icon name="loading" spin />}
      </div>
      <ul class="plain-list sessions" aria-label="Sessions">
        {sessions.map((session) => (
          <li key={session.sessionId} class={`session-line${session.sessionId === shown ? " shown" : ""}`}>
            {renaming === session.sessionId
              ? <Rename session={session} onDone={async (title) => {
                if (title !== null && await store.attempt("rename", { sessionId: session.sessionId, title })) listing.change(session.sessionId, (one) => ({ ...one, title }));
                setRenaming(null);
              }} />
              : <Line session={session} state={states.get(session.sessionId) ?? session.state} time={ago(session.updatedAt, now)} shown={session.sessionId === shown}
                  folders={(store.surroundings.value?.folders.length ?? 0) > 1}
                  onOpen={() => void open(session.sessionId)} onRename={() => setRenaming(session.sessionId)} onFork={async () => {
                    onDone();
                    const fork = await store.attempt("fork", { sessionId: session.sessionId });
                    if (fork) store.show(fork);
                  }} onExport={() => void store.attempt("exportMarkdown", { sessionId: session.sessionId })} onDelete={async () => {
                    const answer = await store.attempt("delete", { sessionId: session.sessionId });
                    if (answer?.deleted) listing.change(session.sessionId, () => null);
                  }} />}
          </li>
        ))}
      </ul>
      {more && <button type="button" class="link session-more" onClick={() => listing.more()}>Earlier sessions</button>}
      {sessions.length === 0 && !loading && <p class="choices-empty muted" role="status">{error ?? (query ? `No session has “${query}” in it.` : "There are no sessions yet.")}</p>}
    </div>
  );
}

interface LineProps {
  session: Session; state: Session["state"]; time: string; shown: boolean; folders: boolean;
  onOpen(): void; onRename(): void; onFork(): void; onExport(): void; onDelete(): void;
}

const STATES: Record<Session["state"], string> = { idle: "", running: "running", waiting: "waits for you" };

function Line({ session, state, time, shown, folders, onOpen, onRename, onFork, onExport, onDelete }: LineProps) {
  const title = session.title || "New session";
  const facts = [STATES[state], session.lockedBy === undefined ? "" : "open elsewhere", folders ? fileName(session.workspaceUri) : "", time].filter(Boolean);
  return (
    <>
      <button type="button" class="session-open" aria-current={shown ? "true" : undefined} title={title} onClick={onOpen} onKeyDown={(event) => {
        if (event.key === "F2") onRename();
        else if (event.key === "Delete") onDelete();
        else return;
        event.preventDefault();
      }}>
        {state === "running" ? <Icon name="loading" spin /> : state === "waiting" ? <Icon name="bell-dot" class="attention" /> : <Icon name={shown ? "check" : session.forkedFrom ? "repo-forked" : "comment"} />}
        <span class="session-words">
          <span class="ellipsis">{title}</span>
          <span class="muted small ellipsis">{facts.join(" · ")}</span>
        </span>
      </button>
      <span class="line-actions">
        <button type="button" class="icon-button tiny" aria-label={`Rename ${title}`} title="Rename (F2)" onClick={onRename}><Icon name="edit" /></button>
        <button type="button" class="icon-button tiny" aria-label={`Fork ${title}`} title="Fork" onClick={onFork}><Icon name="repo-forked" /></button>
        <button type="button" class="icon-button tiny" aria-label={`Export ${title}`} title="Export as Markdown" onClick={onExport}><Icon name="export" /></button>
        <button type="button" class="icon-button tiny" aria-label={`Delete ${title}`} title="Delete (Del)" onClick={onDelete}><Icon name="trash" /></button>
      </span>
    </>
  );
}

function Rename({ session, onDone }: { session: Session; onDone(title: string | null): Promise<void> }) {
  const [title, setTitle] = useState(session.title);
  const input = useRef<HTMLInputElement>(null);
  useLayoutEffect(() => input.current?.select(), []);
  return (
    <input ref={input} type="text" class="rename" aria-label="Title" maxLength={200} value={title} onInput={(event) => setTitle(event.currentTarget.value)} onKeyDown={(event) => {
      if (event.key === "Enter") void onDone(title.trim() && title.trim() !== session.title ? title.trim() : null);
      else if (event.key === "Escape") void onDone(null);
      else return;
      event.preventDefault();
      event.stopPropagation();
    }} onBlur={() => void onDone(null)} />
  );
}
