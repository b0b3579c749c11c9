/** The answers to a question, as buttons say them. */
import type { PermissionOption } from "../../shared/wire";

const SCOPES: Record<PermissionOption["scope"], string> = {
  once: "Only this time", session: "In this session", workspace: "In this workspace, from now on", user: "Everywhere, from now on",
};

export function isRejection(option: PermissionOption): boolean {
  return option.kind === "reject_once" || option.kind === "reject_always";
}

/** How far it reaches. What an answer for good covers is told by `rule`. */
export function scopeOf(option: PermissionOption): string {
  return SCOPES[option.scope] ?? option.scope;
}

/** Allowing first, narrow before wide; rejecting last. Unknown kinds are no permission and are left out. */
export function sorted(options: readonly PermissionOption[]): PermissionOption[] {
  const kinds = ["allow_once", "allow_always", "reject_once", "reject_always"];
  const scopes = ["once", "session", "workspace", "user"];
  const rank = (option: PermissionOption) => kinds.indexOf(option.kind) * 10 + scopes.indexOf(option.scope);
  return options.filter((option) => kinds.includes(option.kind)).sort((a, b) => rank(a) - rank(b));
}
