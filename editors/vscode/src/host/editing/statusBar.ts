/** One item in the status bar: whether an agent runs, waits for the user or rests, with a way to stop it. */
import * as vscode from "vscode";
import type { Connection } from "../../shared/messages";
import type { EventNotification } from "../../shared/wire";

/** The open questions of each session that runs, by id. A session that rests is not in it. */
export type Activities = ReadonlyMap<string, readonly string[]>;

export function activitiesAfter(activities: Activities, { sessionId, event }: EventNotification): Activities {
  const then = new Map(activities);
  const questions = activities.get(sessionId);
  if (event.type === "agent_start") then.set(sessionId, []);
  else if (event.type === "permission_requested") then.set(sessionId, [...(questions ?? []), event.requestId]);
  else if (event.type === "permission_resolved" && questions) then.set(sessionId, questions.filter((each) => each !== event.requestId));
  else if (event.type === "agent_end") then.delete(sessionId);
  else return activities;
  return then;
}

function connectionText(connection: Connection): { text: string; isError: boolean } {
  switch (connection.state) {
    case "ready": return { text: "$(sparkle) agentd", isError: false };
    case "starting": return { text: "$(loading~spin) agentd", isError: false };
    case "installing": return { text: "$(loading~spin) agentd: installing", isError: false };
    case "missing": return { text: "$(warning) agentd: set up", isError: false };
    case "failed": return { text: "$(error) agentd stopped", isError: true };
  }
}

export class StatusBar implements vscode.Disposable {
  private readonly item = vscode.window.createStatusBarItem("agentd.state", vscode.StatusBarAlignment.Right, 100);
  private readonly stop = vscode.window.createStatusBarItem("agentd.stop", vscode.StatusBarAlignment.Right, 99.9);
  private activities: Activities = new Map();
  private connection: Connection = { state: "starting" };

  constructor() {
    this.item.name = "agentd";
    this.item.command = "agentd.ui.focusChat";
    this.stop.name = "agentd: Stop";
    this.stop.text = "$(debug-stop)";
    this.stop.tooltip = "Stop what agentd runs";
    this.stop.accessibilityInformation = { label: "Stop what agentd runs", role: "button" };
    this.stop.command = "agentd.ui.cancel";
    this.draw();
    this.item.show();
  }

  dispose(): void {
    this.item.dispose();
    this.stop.dispose();
  }

  note(notification: EventNotification): void {
    const then = activitiesAfter(this.activities, notification);
    if (then === this.activities) return;
    this.activities = then;
    this.draw();
  }

  /** With a new process nothing runs until its events say so. */
  connected(connection: Connection): void {
    if (connection.state !== this.connection.state && connection.state !== "ready") this.activities = new Map();
    this.connection = connection;
    this.draw();
  }

  private draw(): void {
    const all = [...this.activities.values()];
    const waiting = all.reduce((sum, questions) => sum + questions.length, 0);
    const { text, isError } = connectionText(this.connection);
    if (waiting > 0) this.item.text = `$(question) agentd asks${waiting > 1 ? ` (${waiting})` : ""}`;
    else if (all.length > 0) this.item.text = `$(loading~spin) agentd works${all.length > 1 ? ` (${all.length})` : ""}`;
    else this.item.text = text;
    this.item.tooltip = waiting > 0 ? "agentd waits for your answer" : all.length > 0 ? "agentd works; click to watch" : "Open agentd";
    this.item.backgroundColor = waiting > 0 ? new vscode.ThemeColor("statusBarItem.warningBackground")
      : isError ? new vscode.ThemeColor("statusBarItem.errorBackground") : undefined;
    if (all.length > 0) this.stop.show();
    else this.stop.hide();
  }
}
