import { createContext } from "preact";
import { useContext } from "preact/hooks";
import type { Box } from "./box";

export const BoxContext = createContext<Box | null>(null);

/** The box, inside the composer. */
export function useBox(): Box {
  const box = useContext(BoxContext);
  if (!box) throw new Error("There is no prompt box around this component.");
  return box;
}
