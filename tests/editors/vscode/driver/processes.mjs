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

export const daemons = (pid) => below(pid).filter((each) => / -m agentd\b/.test(each.command));
export const hosts = (pid) => below(pid).filter((each) => each.command.includes("--type=extensionHost"));
