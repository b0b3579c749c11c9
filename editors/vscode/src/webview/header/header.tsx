/** Which session is shown, what it has used, and where a new one begins. */
import { useStore } from "../model/store";
import { boxOf } from "../composer/box";
import { Icon } from "../ui/icon";
import { MenuButton } from "../ui/menu";
import { FolderPicker } from "./folder";
import { SessionPicker } from "./session-picker";
import { SetUpState } from "./set-up-state";
import { UsageMeter } from "./usage";

export function Header() {
  const store = useStore();
  const around = store.surroundings.value;
  const session = store.session.value?.session;
  if (!around || around.connection.state === "missing" || around.connection.state === "installing") return null;
  const sessionId = session?.sessionId;
  const start = async () => {
    if (await store.attempt("newSession", {})) boxOf(store).askFocus();
  };
  return (
    <div class="header">
      <SessionPicker />
      <span class="grow" />
      {around.folders.length > 1 && !session && <FolderPicker />}
      <SetUpState />
      <UsageMeter />
      <button type="button" class="icon-button" aria-label="New session" title="New session" onClick={() => void start()}><Icon name="add" /></button>
      <MenuButton class="icon-button" label="More actions" align="end" items={[
        { label: "Fork session", icon: "repo-forked", disabled: !sessionId, run: () => void fork() },
        { label: "Sum up the history", icon: "fold", detail: "Frees room in the context window", disabled: !sessionId || store.session.value?.state !== "idle", run: () => void store.attempt("compact", { sessionId: sessionId! }) },
        { label: "Export as Markdown", icon: "export", disabled: !sessionId, run: () => void store.attempt("exportMarkdown", { sessionId: sessionId! }) },
        { label: "Set-up and keys", icon: "key", run: () => {
          store.setUp.value = true;
        } },
        { label: "Settings", icon: "gear", run: () => void store.attempt("action", { name: "openSettings" }) },
        { label: "Check the set-up", icon: "pulse", run: () => void store.attempt("action", { name: "doctor" }) },
        { label: "Show log", icon: "output", run: () => void store.attempt("action", { name: "showLog" }) },
      ]}><Icon name="ellipsis" /></MenuButton>
    </div>
  );

  async function fork() {
    const shown = await store.attempt("fork", { sessionId: sessionId! });
    if (shown) store.show(shown);
  }
}
