/**
 * Records what the real daemon tells in the course of prompts, as the view gets it: `npm run fixtures`. Each recording
 * is {sessionId, events, reads: [{at, snapshot}], snapshot}: all events in the order they came, what the session was
 * when it was read in the middle (`at`: behind so many events), and what it is in the end.
 */
import { cpSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { start } from "./daemon.mjs";
import { scenarios } from "./scenarios.mjs";

const here = fileURLToPath(new URL(".", import.meta.url));
// As long as what stands in the recording for it, so that offsets stay true.
const SHOWN = "/home/user/project";

for (const [name, scenario] of Object.entries(scenarios)) {
  if (process.argv.length > 2 && !process.argv.includes(name)) continue;
  const place = mkdtempSync(join(tmpdir(), "agentd-"));
  if (place.length !== SHOWN.length) throw new Error(`${place} is not as long as ${SHOWN}`);
  if (scenario.project) cpSync(join(here, "../../../agentd/demo_project"), join(place, "workspace"), { recursive: true });
  writeFileSync(join(place, "script.json"), JSON.stringify(scenario.script ?? []));
  const model = scenario.model ?? `scripted/${place}/script.json`;
  const recording = await record(place, model, scenario);
  const text = JSON.stringify(recording, null, 0).replaceAll(place, SHOWN).replaceAll("},{\"sessionId\"", "},\n{\"sessionId\"");
  writeFileSync(join(here, "fixtures", `${name}.json`), `${text}\n`);
  console.log(`${name}: ${recording.events.length} events, ${Math.round(text.length / 1024)} KB`);
  rmSync(place, { recursive: true });
}

async function record(place, model, scenario) {
  let daemon = await start(place, scenario);
  const { session } = await daemon.call("agentd/session/new", { model });
  const { sessionId } = session;
  const reads = [];
  const tape = [];
  const it = {
    sessionId, place,
    call: (method, params) => daemon.call(method, { sessionId, ...params }),
    next: (type, more = () => true) => daemon.next((note) => note.event.type === type && more(note)),
    prompt: (prompt, more) => daemon.call("agentd/prompt", { sessionId, prompt, ...more }),
    async read() {
      const snapshot = await daemon.call("agentd/session/get", { sessionId });
      reads.push({ at: tape.length + daemon.events.length, snapshot });
    },
    async killAndReopen() {
      await daemon.kill();
      tape.push(...daemon.events);
      daemon = await start(place, scenario);
      const { events } = await daemon.call("agentd/session/attach", { sessionId, afterSeq: tape.findLast((note) => note.seq && note.sessionId === sessionId).seq });
      tape.push(...events);
    },
  };
  await scenario.play(it);
  const snapshot = await it.call("agentd/session/get");
  await daemon.stop();
  return { sessionId, events: [...tape, ...daemon.events], reads, snapshot };
}
