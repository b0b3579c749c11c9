/** What stands between the conversation and the prompt box: from what can wait to what waits for the user. */
import { ChangesPanel } from "./changes";
import { ConnectionNote } from "./connection-note";
import { FailureNote } from "./failure";
import { OthersPanel } from "./others";
import { Permissions } from "./permissions";
import { QueuePanel } from "./queue";
import { TodoPanel } from "./todo";

export function Panels() {
  return (
    <div class="panels">
      <OthersPanel />
      <TodoPanel />
      <ChangesPanel />
      <QueuePanel />
      <Permissions />
      <ConnectionNote />
      <FailureNote />
    </div>
  );
}
