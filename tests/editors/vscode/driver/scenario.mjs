/** Scenarios by name: each module of `scenarios` tells its own while it is imported. */

export const scenarios = new Map();

/**
 * A scenario. `play` gets a `Stage` (see stage.mjs). The name is a test's name, so it is written as one string
 * between double quotes right behind `scenario(`.
 */
export function scenario(name, play) {
  if (scenarios.has(name)) throw new Error(`two scenarios have the name ${name}`);
  scenarios.set(name, play);
}

/**
 * A scenario in which VS Code does nothing of its own that no other one has it do: the rest is done by our page and
 * our daemon, which are the same in every version. So the older VS Code plays it at night only.
 */
export const inNewest = scenario;
