/** What has the room while there is no conversation: what is missing and how to get it, or what can be done. */
import { useStore } from "../model/store";
import { Empty } from "./empty";
import { Failed, Installing, Missing, Starting } from "./connection";
import { Keys, lacksModel } from "./keys";
import { Problems, Restricted } from "./banners";
import { Icon } from "../ui/icon";

export function Setup() {
  const store = useStore();
  const around = store.surroundings.value;
  if (!around) return <div class="setup" aria-busy="true" />;
  return (
    <div class="setup" tabIndex={-1}>
      {store.setUp.value && store.session.value && (
        <button type="button" class="link back" onClick={() => {
          store.setUp.value = false;
        }}><Icon name="arrow-left" /> Back to the conversation</button>
      )}
      <Screen />
      <div class="banners">
        <Restricted />
        {around.connection.state === "ready" && <Problems />}
      </div>
    </div>
  );
}

function Screen() {
  const store = useStore();
  const around = store.surroundings.value!;
  const { connection } = around;
  switch (connection.state) {
    case "missing": return <Missing reason={connection.reason} />;
    case "installing": return <Installing step={connection.step} />;
    case "starting": return <Starting />;
    case "failed": return <Failed reason={connection.reason} {...(connection.hint === undefined ? {} : { hint: connection.hint })} />;
    case "ready": return store.setUp.value || lacksModel(around) ? <Keys /> : <Empty />;
  }
}
