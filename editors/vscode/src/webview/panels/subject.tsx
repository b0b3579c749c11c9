/** What is asked about, whole and as it is. */
import { useMemo } from "preact/hooks";
import type { PermissionSubject } from "../../shared/wire";
import { useStore } from "../model/store";
import { rows } from "../transcript/patch";
import { filePath } from "../transcript/words";
import { Icon } from "../ui/icon";
import { Visible } from "./visible";

export function Subject({ subject }: { subject: PermissionSubject }) {
  switch (subject.type) {
    case "command": return <Command {...subject} />;
    case "edit": return <Patch uri={subject.uri} patch={subject.patch} />;
    case "read": return <Place words="File" value={subject.uri.replace(/^file:\/\//, "")} />;
    case "fetch": return <Place words="Address" value={subject.url} />;
    case "mcp": return (
      <>
        <Place words="Server" value={`${subject.server} · ${subject.tool}`} />
        <pre class="subject-text" tabIndex={0} aria-label="Arguments"><Visible text={JSON.stringify(subject.arguments, null, 2)} /></pre>
      </>
    );
    // A newer daemon may ask about what is not known here: all of it is shown.
    default: return <pre class="subject-text" tabIndex={0} aria-label="What is asked about"><Visible text={JSON.stringify(subject, null, 2)} /></pre>;
  }
}

function Command({ command, cwd, reason }: { command: string; cwd: string; reason?: string }) {
  return (
    <>
      <pre class="subject-text command" tabIndex={0} aria-label="Command"><Visible text={command} /></pre>
      <p class="subject-facts"><Icon name="folder" /><span class="visually-hidden">In the folder </span><span class="mono"><Visible text={cwd} /></span></p>
      {reason !== undefined && <p class="subject-facts"><Icon name="warning" class="attention" /><span>Outside the sandbox: <Visible text={reason} /></span></p>}
    </>
  );
}

function Place({ words, value }: { words: string; value: string }) {
  return <p class="subject-place"><span class="muted">{words}</span> <span class="mono"><Visible text={value} /></span></p>;
}

function Patch({ uri, patch }: { uri: string; patch: string }) {
  const store = useStore();
  const made = useMemo(() => rows(patch), [patch]);
  const path = filePath(uri, store.session.value?.session.workspaceUri ?? "");
  return (
    <div class="diff subject-diff">
      <div class="diff-bar">
        <button type="button" class="link path" title={`Open ${path}`} onClick={() => void store.attempt("openFile", { uri })}><Visible text={path} /></button>
        <button type="button" class="button secondary compact" onClick={() => void store.attempt("previewPatch", { uri, patch })}><Icon name="diff" /> Open in diff editor</button>
      </div>
      <div class="diff-rows" tabIndex={0} role="region" aria-label={`Changes in ${path}`}>
        {made.length === 0 ? <pre class="subject-text"><Visible text={patch} /></pre> : (
          <table>
            <tbody>
              {made.map((row, index) => (
                <tr key={index} class={row.kind}>
                  <td class="number">{row.new ?? row.old ?? ""}</td>
                  <td class="sign">{row.kind === "added" ? "+" : row.kind === "removed" ? "−" : row.kind === "gap" ? "⋯" : ""}</td>
                  <td class="text"><Visible text={row.text.replace(/\r$/, "")} /></td>
                </tr>
              ))}
            </tbody>
          </table>
        )}
      </div>
    </div>
  );
}
