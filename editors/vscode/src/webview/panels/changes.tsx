import { signal } from "@preact/signals";
import { useMemo } from "preact/hooks";
import { useStore, type Store } from "../model/store";
import { Numbers } from "../transcript/diff";
import { plural } from "../transcript/words";
import { Icon } from "../ui/icon";
import { filesOf, revertsOf, type ChangedFile } from "./changes-model";
import { Section } from "./section";

const LETTERS = { created: "A", changed: "M", deleted: "D" } as const;
const WORDS = { created: "New file", changed: "Changed", deleted: "Deleted" } as const;

/** The files that the session has changed: look, keep or take back, one by one or all. */
export function ChangesPanel() {
  const store = useStore();
  const conflicts = useMemo(() => signal<readonly Conflict[]>([]), [store]);
  const changes = store.changes.value;
  const files = useMemo(() => filesOf(changes), [changes]);
  const open = files.filter((file) => file.state === "open");
  if (open.length === 0 && conflicts.value.length === 0) return null;
  const busy = (store.session.value?.state ?? "idle") !== "idle";
  const additions = open.reduce((all, file) => all + file.additions, 0);
  const deletions = open.reduce((all, file) => all + file.deletions, 0);
  const take = (some: readonly ChangedFile[]) => void revert(store, some, files).then((found) => {
    conflicts.value = found;
  });
  return (
    <Section
      name="Changed files" title={plural(open.length, "changed file")} open={false} summary={<Numbers additions={additions} deletions={deletions} />}
      actions={
        <span class="panel-actions">
          <button type="button" class="button secondary compact" aria-label="Accept all" title="Accept all: keep the changes" onClick={() => void acceptAll(store, open)}>
            <Icon name="check-all" /><span class="words">Accept all</span>
          </button>
          <button type="button" class="button secondary compact" aria-label="Revert all" disabled={busy} title={busy ? "Possible once the prompt has ended" : "Revert all: take the changes back"} onClick={() => take(open)}>
            <Icon name="discard" /><span class="words">Revert all</span>
          </button>
        </span>
      }
    >
      <Conflicts conflicts={conflicts.value} onDismiss={() => {
        conflicts.value = [];
      }} />
      <ul class="plain-list">
        {files.map((file) => <FileLine key={file.uri} file={file} busy={busy} onRevert={() => take([file])} />)}
      </ul>
    </Section>
  );
}

interface Conflict { path: string; reason: string }

function FileLine({ file, busy, onRevert }: { file: ChangedFile; busy: boolean; onRevert(): void }) {
  const store = useStore();
  const { uri, path, action, state, additions, deletions, changes } = file;
  const at = path.lastIndexOf("/") + 1;
  const { sessionId, promptId } = changes[0]!;
  return (
    <li class={`file-line ${state}`}>
      <button type="button" class="row-button" title={`${path}: open the diff`} onClick={() => void store.attempt("openDiff", { sessionId, promptId, uri })}>
        <span class={`file-letter ${action}`} title={WORDS[action]} aria-hidden="true">{LETTERS[action]}</span>
        <span class="visually-hidden">{WORDS[action]}: </span>
        <span class="file-name">{path.slice(at)}</span>
        <span class="muted small ellipsis grow file-folder">{path.slice(0, at - 1)}</span>
        {state === "open" ? <Numbers additions={additions} deletions={deletions} /> : <span class="muted small">{state}</span>}
      </button>
      {state === "open" && (
        <span class="line-actions">
          <button type="button" class="icon-button tiny" aria-label={`Accept ${path}`} title="Accept" onClick={() => void acceptAll(store, [file])}><Icon name="check" /></button>
          <button type="button" class="icon-button tiny" aria-label={`Revert ${path}`} title={busy ? "Possible once the prompt has ended" : "Revert"} disabled={busy} onClick={onRevert}><Icon name="discard" /></button>
        </span>
      )}
    </li>
  );
}

function Conflicts({ conflicts, onDismiss }: { conflicts: readonly Conflict[]; onDismiss(): void }) {
  return (
    <div role="alert">
      {conflicts.length > 0 && (
        <div class="callout is-warning conflicts">
          <Icon name="warning" />
          <div class="callout-text grow">
            Not taken back:
            <ul>{conflicts.map(({ path, reason }) => <li key={path}><b>{path}</b>: {reason}</li>)}</ul>
          </div>
          <button type="button" class="icon-button tiny" aria-label="Dismiss" onClick={onDismiss}><Icon name="close" /></button>
        </div>
      )}
    </div>
  );
}

async function acceptAll(store: Store, files: readonly ChangedFile[]): Promise<void> {
  const open = files.flatMap((file) => file.changes.filter((change) => change.state === "open"));
  await Promise.all(open.map(({ sessionId, promptId, uri }) => store.attempt("accept", { sessionId, promptId, uri })));
}

async function revert(store: Store, files: readonly ChangedFile[], all: readonly ChangedFile[]): Promise<Conflict[]> {
  const conflicts: Conflict[] = [];
  const paths = new Map(all.map((file) => [file.uri, file.path]));
  const { sessionId } = files[0]!.changes[0]!;
  // One after the other: the daemon takes no second one meanwhile.
  for (const call of revertsOf(files, all)) {
    const answer = await store.attempt("revert", { sessionId, ...call });
    if (!answer) break;
    for (const { uri, conflict } of answer.files) if (conflict) conflicts.push({ path: paths.get(uri) ?? uri, reason: conflict });
  }
  return conflicts;
}
