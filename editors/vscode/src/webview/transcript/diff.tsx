/** An edit as a diff in the transcript, with the way to VS Code's own diff editor. */
import { useMemo, useState } from "preact/hooks";
import { useStore } from "../model/store";
import type { FileAction } from "../../shared/wire";
import { IconButton } from "./icon";
import { rows } from "./patch";
import { filePath, plural } from "./words";

const SHOWN = 24;

interface Props { uri: string; patch: string; action?: FileAction; additions?: number; deletions?: number; promptId?: string | undefined }

export function Diff({ uri, patch, action, additions, deletions, promptId }: Props) {
  const store = useStore();
  const session = store.session.value!.session;
  const [all, setAll] = useState(false);
  const made = useMemo(() => rows(patch), [patch]);
  const shown = all || made.length <= SHOWN + 6 ? made : made.slice(0, SHOWN);
  const path = filePath(uri, session.workspaceUri);
  const open = () => promptId === undefined
    ? store.attempt("previewPatch", { uri, patch })
    : store.attempt("openDiff", { sessionId: session.sessionId, promptId, uri });
  return (
    <div class="diff">
      <div class="diff-bar">
        <button type="button" class="link path" title={`Open ${path}`} onClick={() => void store.attempt("openFile", { uri })}>{path}</button>
        {action && action !== "changed" && <span class="badge">{action}</span>}
        <Numbers additions={additions} deletions={deletions} />
        <IconButton name="diff" label="Open diff" onClick={() => void open()} />
      </div>
      {made.length > 0 && (
        <div class="diff-rows" tabIndex={0} role="region" aria-label={`Changes in ${path}`}>
          <table>
            <tbody>
              {shown.map((row, index) => (
                <tr key={index} class={row.kind}>
                  <td class="number">{row.new ?? row.old ?? ""}</td>
                  <td class="sign">{row.kind === "added" ? "+" : row.kind === "removed" ? "−" : row.kind === "gap" ? "⋯" : ""}</td>
                  <td class="text">{row.text}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
      {shown.length < made.length && (
        <button type="button" class="link more" onClick={() => setAll(true)}>Show all {plural(made.length, "line")}</button>
      )}
    </div>
  );
}

export function Numbers({ additions, deletions }: { additions?: number | undefined; deletions?: number | undefined }) {
  if (additions === undefined || deletions === undefined) return null;
  return (
    <span class="numbers" aria-label={`${plural(additions, "line")} added, ${deletions} removed`}>
      {additions > 0 && <span class="plus">+{additions}</span>}
      {deletions > 0 && <span class="minus">−{deletions}</span>}
    </span>
  );
}
