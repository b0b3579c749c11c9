import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { inNewest, scenario } from "../driver/scenario.mjs";
import { expect, until } from "../driver/until.mjs";

/** A Python environment beside the workspace, with the agentd under test in it; gives its interpreter. */
function environment(stage, name, { agentd = true } = {}) {
  const [python] = stage.command();
  const bin = join(stage.folder, name, "bin");
  mkdirSync(bin, { recursive: true });
  const program = (file, line) => writeFileSync(join(bin, file), `#!/bin/sh\n${line}\n`, { mode: 0o755 });
  program("python", `exec '${python}' "$@"`);
  if (agentd) program("agentd", `exec '${python}' -m agentd "$@"`);
  return join(bin, "python");
}

/** Nothing says where agentd is. */
const NOWHERE = { "agentd.command": [] };

async function answers(stage, chat, text) {
  await chat.send(`${text}?`);
  (await stage.model.asked()).ends(`${text}.`);
  await chat.shows(`${text}.`);
}

scenario("agentd is found in the Python environment that is selected, also when that is told late or changes", async (stage) => {
  const [bare, first, second] = [environment(stage, "bare", { agentd: false }), environment(stage, "first"), environment(stage, "second")];
  stage.python({ interpreter: bare, isLate: true });
  const window = await stage.open({ machine: NOWHERE });
  const chat = await window.chat({ ready: false });
  await chat.frame.getByText("was not found").first().waitFor();
  stage.python({ interpreter: first });
  await chat.ready();
  await answers(stage, chat, "Found");
  const [daemon] = stage.daemons();
  stage.python({ interpreter: second });
  await window.notification("has its own agentd").waitFor();
  expect(stage.daemons()[0] === daemon, "what ran was ended without a word of the user's");
  await window.answer("has its own agentd", "Restart agentd");
  await until("it runs anew", () => stage.daemons().length === 1 && stage.daemons()[0] !== daemon);
  await answers(stage, chat, "Again");
});

inNewest("where the Python extension fails, agentd is missing and nothing else is", async (stage) => {
  stage.python({ interpreter: environment(stage, "some"), throws: true });
  const window = await stage.open({ machine: NOWHERE });
  const chat = await window.chat({ ready: false });
  await chat.frame.getByText("was not found").first().waitFor();
  await until("the reason is in the log", () => stage.logs().includes("this environment cannot be told"));
});

scenario("in Restricted Mode no Python environment is asked for, and trust has it found", async (stage) => {
  stage.python({ interpreter: environment(stage, "theirs") });
  const window = await stage.open({ machine: NOWHERE, trusted: false });
  const chat = await window.chat({ ready: false });
  await chat.frame.getByText("was not found").first().waitFor();
  expect(stage.pythonAsked() === 0, "the Python extension was started");
  await window.trust();
  await window.chat();
  await answers(stage, chat, "Trusted");
  expect(stage.pythonAsked() > 0, "the Python extension was not asked");
});
