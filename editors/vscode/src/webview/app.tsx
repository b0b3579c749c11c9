/** The layout: header, transcript, panels and composer, each in a place of its own. */
import { useEffect } from "preact/hooks";
import { Composer } from "./composer/composer";
import { Header } from "./header/header";
import { useStore } from "./model/store";
import { Panels } from "./panels/panels";
import { Setup } from "./setup/setup";
import { Transcript } from "./transcript/transcript";

export function App() {
  const { session, setUp, surroundings } = useStore();
  const still = surroundings.value?.reduceMotion ?? false;
  useEffect(() => void document.body.classList.toggle("reduce-motion", still), [still]);
  const view = session.value;
  // Without a conversation the set-up has the room: what is missing, or what can be done.
  const begun = view !== null && (view.entries.length > 0 || view.hasMore || view.state !== "idle");
  return (
    <div class="app">
      <header class="slot-header"><Header /></header>
      <main class="slot-main">
        {begun && !setUp.value ? <Transcript key={view.session.sessionId} /> : <Setup />}
      </main>
      <section class="slot-panels"><Panels /></section>
      <footer class="slot-composer"><Composer /></footer>
    </div>
  );
}
