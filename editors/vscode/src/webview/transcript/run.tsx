/** The end of a run: what it took, what it changed, how it ended and the way on from there. */
import type { RunError, Usage } from "../../shared/wire";
import { useShown, useStore } from "../model/store";
import type { RunEnd } from "../model/view";
import { Icon } from "./icon";
import { count, duration, fileName, money, plural } from "./words";

export function RunFooter({ entry, isLast, nested }: { entry: RunEnd; isLast: boolean; nested: boolean }) {
  return (
    <div class="run-end" data-stop-reason={entry.stopReason}>
      {entry.stopReason !== "stop" && <Ended entry={entry} offers={isLast && !nested} />}
      {entry.files.length > 0 && !nested && <Files entry={entry} />}
      <Facts entry={entry} />
    </div>
  );
}

const ENDS: Record<string, { icon: string; words: string }> = {
  aborted: { icon: "debug-stop", words: "Stopped" },
  interrupted: { icon: "debug-disconnect", words: "Interrupted: agentd stopped while this ran" },
  max_turns: { icon: "debug-pause", words: "Paused: the most turns for one prompt were reached" },
  length: { icon: "fold-down", words: "Cut off: the model's output limit was reached" },
  refusal: { icon: "circle-slash", words: "The model refused" },
  error: { icon: "error", words: "Failed" },
};

function Ended({ entry, offers }: { entry: RunEnd; offers: boolean }) {
  const end = ENDS[entry.stopReason] ?? { icon: "info", words: entry.stopReason };
  const { error } = entry;
  if (!error) {
    return (
      <div class="mark" role="note">
        <Icon name={end.icon} />
        <span>{end.words}</span>
        {offers && <WaysOn entry={entry} />}
      </div>
    );
  }
  return (
    <div class="callout is-error" role="alert">
      <Icon name={end.icon} />
      <div class="callout-text">
        <div><strong>{headline(error)}</strong> <span>{error.message}</span></div>
        {error.requestId && <div class="muted small">Request {error.requestId}{error.status ? `, status ${error.status}` : ""}</div>}
        {offers && <div class="callout-actions"><WaysOn entry={entry} /></div>}
      </div>
    </div>
  );
}

/** What the user can do about it. */
function WaysOn({ entry: { error, stopReason, model } }: { entry: RunEnd }) {
  const store = useStore();
  const sessionId = useShown((view) => view.session.sessionId);
  const needsKey = error?.kind === "auth";
  const goesOn = stopReason !== "refusal" && (error === undefined || error.retryable || error.kind !== "bad_request");
  const provider = model?.split("/", 1)[0];
  return (
    <>
      {needsKey && (
        <button type="button" class="button" onClick={() => void store.attempt("action", { name: "setKey", ...(provider ? { argument: provider } : {}) })}>
          Set key
        </button>
      )}
      {goesOn && (
        <button type="button" class={`button${needsKey || !error ? " secondary" : ""}`} onClick={() => void store.attempt("goOn", { sessionId })}>
          {error ? "Try again" : "Go on"}
        </button>
      )}
      {error && <button type="button" class="button secondary" onClick={() => void store.attempt("action", { name: "showLog" })}>Show log</button>}
    </>
  );
}

const HEADLINES: Record<string, string> = {
  auth: "The key was not accepted.", rate_limit: "Rate limit.", overloaded: "The model's server is overloaded.", context_overflow: "The conversation is too long for the model.",
  bad_request: "The request was not accepted.", refusal: "The model refused.", quota: "The quota is used up.", network: "The model's server could not be reached.",
  timeout: "The model's server did not answer in time.", protocol: "The answer could not be read.", server: "The model's server failed.",
  storage: "The session could not be saved.", internal: "agentd failed.",
};

function headline(error: RunError): string {
  return HEADLINES[error.kind] ?? "Failed.";
}

function Files({ entry }: { entry: RunEnd }) {
  const store = useStore();
  const { promptId } = entry;
  const sessionId = useShown((view) => view.session.sessionId);
  return (
    <div class="chips files" role="group" aria-label={`${plural(entry.files.length, "file")} changed`}>
      {entry.files.map(({ uri, action }) => (
        <button key={uri} type="button" class={`chip ${action}`} title={`${action}: ${uri}`} disabled={promptId === undefined}
          onClick={() => void store.attempt("openDiff", { sessionId, promptId: promptId!, uri })}>
          <Icon name={action === "created" ? "diff-added" : action === "deleted" ? "diff-removed" : "diff-modified"} />
          <span>{fileName(uri)}</span>
        </button>
      ))}
    </div>
  );
}

function Facts({ entry }: { entry: RunEnd }) {
  const { usage } = entry;
  const facts = [
    entry.durationMs === undefined || entry.durationMs < 100 ? "" : duration(entry.durationMs),
    entry.turns > 1 ? plural(entry.turns, "turn") : "",
    usage ? `${count(usage.input + usage.cacheRead + usage.cacheWrite)} in` : "",
    usage ? `${count(usage.output)} out` : "",
    usage?.cost ? money(usage.cost.total) : "",
  ].filter(Boolean);
  return facts.length === 0 ? null : <div class="facts" title={usage ? usageWords(usage) : undefined}>{facts.join(" · ")}</div>;
}

function usageWords(usage: Usage): string {
  const share = usage.contextWindow ? ` of ${count(usage.contextWindow)} (${Math.round((100 * usage.contextTokens) / usage.contextWindow)} %)` : "";
  return [
    `Input ${usage.input}, from the cache ${usage.cacheRead}, into the cache ${usage.cacheWrite}`,
    `Output ${usage.output}, thinking ${usage.reasoning} of it`,
    `Context ${count(usage.contextTokens)}${share}`,
  ].join("\n");
}
