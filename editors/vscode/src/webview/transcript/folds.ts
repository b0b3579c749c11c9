/** What the user has opened and folded, kept over being hidden and reloaded. */
import { useCallback } from "preact/hooks";
import { useStore } from "../model/store";

const MOST = 500;

/** Whether `id` is open, `initially` unless the user said otherwise, and the way to say so. */
export function useFold(id: string, initially: boolean): [open: boolean, toggle: () => void] {
  const { memory } = useStore();
  const folds = memory.kept<Record<string, boolean>>("folds", {});
  const open = folds.value[id] ?? initially;
  const toggle = useCallback(() => {
    const { [id]: _, ...others } = folds.peek();
    folds.value = Object.fromEntries([...Object.entries(others).slice(-MOST), [id, !open]]);
  }, [id, open]);
  return [open, toggle];
}
