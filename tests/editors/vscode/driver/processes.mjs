/** Processes as /proc tells them: of this machine, and those below VS Code's server. */
import { readdirSync, readFileSync } from "node:fs";

/** All that run. */
export function all() {
  const found = [];
  for (const name of readdirSync("/proc").filter((each) => /^\d+$/.test(each))) {
    try {
      const [, state, parent] = /\) (\S) (\d+)/.exec(readFileSync(`/proc/${name}/stat`, "utf8"));
      const command = readFileSync(`/proc/${name}/cmdline`, "utf8").split("\0").join(" ").trim();
      if (state !== "Z") found.push({ pid: Number(name), parent: Number(parent), command });
    } catch {
      // it has ended meanwhile
    }
  }
  return found;
}

/** All that descend from a process. */
export function below(pid) {
  const processes = all();
  const found = [];
  const from = [pid];
  while (from.length) {
    const parent = from.pop();
    for (const each of processes.filter((one) => one.parent === parent)) {
      found.push(each);
      from.push(each.pid);
    }
  }
  return found;
}

/** The commands of all that a process descends from, the nearest first. */
export function above(pid) {
  const processes = new Map(all().map((each) => [each.pid, each]));
  const found = [];
  for (let at = processes.get(pid); (at = processes.get(at?.parent)); ) found.push(at.command);
  return found;
}

/** What a process was given as its environment. */
export function environmentOf(pid) {
  const pairs = readFileSync(`/proc/${pid}/environ`, "utf8").split("\0").filter((each) => each.includes("="));
  return Object.fromEntries(pairs.map((each) => [each.slice(0, each.indexOf("=")), each.slice(each.indexOf("=") + 1)]));
}

export const daemons = (pid) => below(pid).filter((each) => / -m agentd\b|\/bin\/agentd\b/.test(each.command));
export const hosts = (pid) => below(pid).filter((each) => each.command.includes("--type=extensionHost"));
