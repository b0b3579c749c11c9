/** The layout: header, transcript, panels and composer, each in a place of its own. */
import { Composer } from "./composer/composer";
import { useStore } from "./model/store";
import { Header } from "./panels/header";
import { Panels } from "./panels/panels";
import { Setup } from "./setup/setup";
import { Transcript } from "./transcript/transcript";

export function App() {
  const { session, setUp } = useStore();
  return (
    <div class="app">
      <header class="slot-header"><Header /></header>
      <main class="slot-main">
        {/* Without a conversation the set-up has the room: what is missing, or what can be done. */}
        {session.value && !setUp.value ? <Transcript key={session.value.session.sessionId} /> : <Setup />}
      </main>
      <section class="slot-panels"><Panels /></section>
      <footer class="slot-composer"><Composer /></footer>
    </div>
  );
}
