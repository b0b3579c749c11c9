/** The demonstration: a small project with a failing test, a model that plays a script. No key, no network. */
import { randomUUID } from "node:crypto";
import { mkdtemp } from "node:fs/promises";
import * as os from "node:os";
import * as path from "node:path";
import * as vscode from "vscode";
import type { SessionResult } from "../shared/wire";
import type { Bridge } from "./bridge";
import type { Wire } from "./daemon";
import type { ShownSession } from "./shown";

const MODEL = "scripted/demo";
export const PROMPT = "A test of this project fails. Find out why and repair it.";

export interface DemoParts {
  client: Wire;
  shown: ShownSession;
  bridge: Bridge;
  extension: vscode.Uri;
}

/** Begins a session in a copy of the demo project, and its prompt. What the agent wants to do the user is asked. */
export async function beginDemo({ client, shown, bridge, extension }: DemoParts): Promise<void> {
  const folder = vscode.Uri.file(path.join(await mkdtemp(path.join(os.tmpdir(), "agentd-demo-")), "calculator"));
  await vscode.workspace.fs.copy(vscode.Uri.joinPath(extension, "media", "demo"), folder);
  const params = { workspaceUri: folder.toString(), model: MODEL, mode: "ask", title: "Demonstration" };
  const { session } = await client.request<SessionResult>("agentd/session/new", params);
  await bridge.reveal();
  bridge.post({ type: "session", shown: shown.begin(session) });
  const prompt = [{ type: "text", text: PROMPT }];
  await client.request("agentd/prompt", { sessionId: session.sessionId, promptId: randomUUID(), prompt, wait: "accepted" });
}
