/** What the view keeps over being hidden and reloaded: `vscode.setState`, one named value at a time. */
import { effect, signal, type Signal } from "@preact/signals";
import type { Host } from "../host";

export interface Memory {
  /** The value kept under `name`, or `initial`; a change of the signal is kept. One signal for each name. */
  kept<T>(name: string, initial: T): Signal<T>;
}

export function createMemory(host: Pick<Host, "load" | "save">): Memory {
  const loaded = host.load();
  const state: Record<string, unknown> = isRecord(loaded) ? { ...loaded } : {};
  const signals = new Map<string, Signal<unknown>>();
  let due = false;

  function save(): void {
    if (due) return;
    due = true;
    queueMicrotask(() => {
      due = false;
      host.save({ ...state });
    });
  }

  return {
    kept<T>(name: string, initial: T): Signal<T> {
      let found = signals.get(name);
      if (!found) {
        const made = signal<unknown>(name in state ? state[name] : initial);
        signals.set(name, made);
        effect(() => {
          if (state[name] === made.value) return;
          state[name] = made.value;
          save();
        });
        found = made;
      }
      return found as Signal<T>;
    },
  };
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
