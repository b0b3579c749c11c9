import { useStore } from "../model/store";
import { Way } from "../setup/connection";
import { Icon } from "../ui/icon";

/** In a conversation whose daemon is gone: why, and the way on. */
export function ConnectionNote() {
  const store = useStore();
  const connection = store.surroundings.value?.connection;
  if (!store.session.value || store.setUp.value || !connection || connection.state === "ready") return null;
  if (connection.state === "starting" || connection.state === "installing") {
    return <div class="callout is-info note" role="status"><Icon name="loading" spin /><div class="callout-text">{connection.state === "starting" ? "Starting agentd…" : connection.step}</div></div>;
  }
  return (
    <div class="callout is-error note" role="alert">
      <Icon name="error" />
      <div class="callout-text">
        {connection.reason}
        {connection.state === "failed" && connection.hint && <div class="muted">{connection.hint}</div>}
        <div class="callout-actions">
          {connection.state === "failed" ? <Way name="restart" icon="refresh">Restart</Way> : <Way name="install">Install agentd</Way>}
          <Way name="showLog" secondary icon="output">Show log</Way>
        </div>
      </div>
    </div>
  );
}
