/** An edit as a diff in the transcript, with the way to VS Code's own diff editor. */
import { useMemo, useState } from "preact/hooks";
import { useShown, useStore } from "../model/store";
import type { FileAction, FileChange } from "../../shared/wire";
import type { Tool } from "../model/view";
import { IconButton } from "./icon";
import { rows } from "./patch";
import { filePath, plural } from "./words";

const SHOWN = 24;

/** The one file of an edit that is about one: the card's own line names it. */
export function singleEdit({ details, isError }: Tool): FileChange | null {
  return details?.type === "edit" && !isError && details.files.length === 1 ? details.files[0]! : null;
}

interface Props { headless: boolean; uri: string; patch: string; action: FileAction; additions: number; deletions: number; promptId: string | undefined }

export function Diff({ headless, uri, patch, action, additions, deletions, promptId }: Props) {
  const store = useStore();
  const folder = useShown((view) => view.session.workspaceUri);
  const [all, setAll] = useState(false);
  const made = useMemo(() => rows(patch), [patch]);
  const shown = all || made.length <= SHOWN + 6 ? made : made.slice(0, SHOWN);
  const path = filePath(uri, folder);
  return (
    <div class="diff">
      {!headless && (
        <div class="diff-bar">
          <button type="button" class="link path" title={`Open ${path}`} onClick={() => void store.attempt("openFile", { uri })}>{path}</button>
          {action !== "changed" && <span class="badge">{action}</span>}
          <Numbers additions={additions} deletions={deletions} />
          <OpenDiff uri={uri} patch={patch} promptId={promptId} />
        </div>
      )}
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

/** In VS Code's diff editor: the file before the prompt and now, or, of a prompt that is not known, the patch. */
export function OpenDiff({ uri, patch, promptId }: { uri: string; patch: string; promptId: string | undefined }) {
  const store = useStore();
  const sessionId = useShown((view) => view.session.sessionId);
  return (
    <IconButton name="diff" label="Open diff" onClick={() => {
      if (promptId === undefined) void store.attempt("previewPatch", { uri, patch });
      else void store.attempt("openDiff", { sessionId, promptId, uri });
    }} />
  );
}

export function Numbers({ additions, deletions }: { additions: number; deletions: number }) {
  return (
    <span class="numbers" aria-label={`${plural(additions, "line")} added, ${deletions} removed`}>
      {additions > 0 && <span class="plus">+{additions}</span>}
      {deletions > 0 && <span class="minus">−{deletions}</span>}
    </span>
  );
}
