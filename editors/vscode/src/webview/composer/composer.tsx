/** The place where prompts are written: what came back, the chips, the box and its buttons. */
import { useMemo } from "preact/hooks";
import { ModePicker } from "../header/mode";
import { ModelPicker } from "../header/model";
import { useStore } from "../model/store";
import { AttachMenu } from "./attach-menu";
import { boxOf } from "./box";
import { Chips } from "./chips";
import { createCollector } from "./collect";
import { BoxContext } from "./context";
import { useDropping } from "./dropping";
import { PromptBox } from "./prompt-box";
import { SendButtons } from "./send-buttons";
import { TroubleNote } from "./trouble";

export function Composer() {
  const store = useStore();
  const box = boxOf(store);
  const collector = useMemo(() => createCollector(store, box), [store, box]);
  const dragging = useDropping(collector);
  const state = store.surroundings.value?.connection.state;
  // Before there is a daemon the set-up has all the room; what was written stays in the draft.
  if (state === "missing" || state === "installing") return null;
  return (
    <BoxContext.Provider value={box}>
      <div class="composer">
        <TroubleNote />
        <div class={`composer-card${dragging ? " dragging" : ""}`}>
          <Chips />
          <PromptBox onPaste={(event) => {
            if (event.clipboardData && collector.pasted(event.clipboardData)) event.preventDefault();
          }} />
          <div class="composer-bar">
            <AttachMenu collector={collector} />
            <ModePicker />
            <ModelPicker />
            <span class="grow" />
            <SendButtons />
          </div>
          {dragging && <div class="drop-hint" aria-hidden="true">Drop to attach</div>}
        </div>
      </div>
    </BoxContext.Provider>
  );
}
