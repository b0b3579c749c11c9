/**
 * What is dropped anywhere on the view goes into the box. VS Code takes the pointer from a view while something of its
 * own is dragged, unless Shift is held: then nothing of that drag is told here, so the hint stands where files are
 * attached. Files from outside of VS Code come without Shift, if their entering is taken: else VS Code opens them.
 */
import { useEffect, useState } from "preact/hooks";
import type { Collector } from "./collect";

/** Whether something is dragged over the view that can be dropped. */
export function useDropping(collector: Collector): boolean {
  const [dragging, setDragging] = useState(false);
  useEffect(() => {
    const over = (event: DragEvent) => {
      // The queue's lines are dragged as well, within their list.
      if (!event.dataTransfer || event.dataTransfer.types.length === 0 || isOwn(event)) return;
      event.preventDefault();
      event.stopPropagation();
      event.dataTransfer.dropEffect = "copy";
      setDragging(true);
    };
    const leave = (event: DragEvent) => {
      if (event.relatedTarget === null) setDragging(false);
    };
    const drop = (event: DragEvent) => {
      setDragging(false);
      if (!event.dataTransfer || isOwn(event)) return;
      event.preventDefault();
      void collector.dropped(event.dataTransfer);
    };
    // On the document: VS Code listens on the window, behind it, and takes the pointer where it hears of a drag.
    const listeners = { dragenter: over, dragover: over, dragleave: leave, drop } as const;
    for (const [name, listener] of Object.entries(listeners)) document.addEventListener(name, listener as EventListener);
    return () => {
      for (const [name, listener] of Object.entries(listeners)) document.removeEventListener(name, listener as EventListener);
    };
  }, [collector]);
  return dragging;
}

function isOwn(event: DragEvent): boolean {
  return event.defaultPrevented || document.querySelector(".queue-line.dragged") !== null || isTextForAField(event);
}

/** Words that are dragged into another field than the prompt belong there. */
function isTextForAField(event: DragEvent): boolean {
  const field = event.target instanceof Element && event.target.closest("input, textarea:not(.prompt)") !== null;
  return field && (event.dataTransfer?.types.every((type) => type === "text/plain" || type === "text/html") ?? false);
}
