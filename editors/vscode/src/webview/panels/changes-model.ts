/** Changed files as the panel lists them: one line for each file, whatever prompts changed it. */
import type { Change } from "../../shared/messages";

export interface ChangedFile {
  uri: string;
  path: string;
  action: Change["action"];
  additions: number;
  deletions: number;
  state: Change["state"];
  /** The changes of single prompts, oldest first. */
  changes: readonly Change[];
}

/** In the order in which they were first changed. */
export function filesOf(changes: readonly Change[]): ChangedFile[] {
  const files = new Map<string, Change[]>();
  for (const change of changes) files.set(change.uri, [...(files.get(change.uri) ?? []), change]);
  return [...files.values()].map((all) => {
    const open = all.filter((change) => change.state === "open");
    const counted = open.length > 0 ? open : all.slice(-1);
    const last = counted.at(-1)!;
    return {
      uri: last.uri, path: last.path, action: actionOf(counted), state: last.state, changes: counted,
      additions: sum(counted, "additions"), deletions: sum(counted, "deletions"),
    };
  });
}

/** What all of them come to. */
function actionOf(changes: readonly Change[]): Change["action"] {
  const last = changes.at(-1)!.action;
  return last === "changed" && changes[0]!.action === "created" ? "created" : last;
}

function sum(changes: readonly Change[], what: "additions" | "deletions"): number {
  return changes.reduce((all, change) => all + change[what], 0);
}

/**
 * The calls that take these files back. Each goes back to before the first prompt whose change is open: what later
 * ones did goes with it. Without `uri` a call takes back all that its prompt changed and that is open.
 */
export function revertsOf(files: readonly ChangedFile[], all: readonly ChangedFile[]): { promptId: string; uri?: string }[] {
  const first = (file: ChangedFile) => file.changes[0]!.promptId;
  const wanted = files.filter((file) => file.state === "open");
  return [...new Set(wanted.map(first))].flatMap((promptId) => {
    const own = wanted.filter((file) => first(file) === promptId);
    const touched = all.filter((file) => file.state === "open" && file.changes.some((change) => change.promptId === promptId));
    return touched.length === own.length ? [{ promptId }] : own.map(({ uri }) => ({ promptId, uri }));
  });
}
