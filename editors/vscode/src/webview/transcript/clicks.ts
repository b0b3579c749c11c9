/** Clicks on what came as HTML: links, and the buttons of code. One listener for all of it. */
import type { RefObject } from "preact";
import { useEffect } from "preact/hooks";
import { useStore } from "../model/store";
import { fileOf } from "./places";

export function useClicks(box: RefObject<HTMLElement | null>): void {
  const store = useStore();
  useEffect(() => {
    const element = box.current!;
    const onClick = (event: MouseEvent) => {
      const target = event.target as Element;
      const link = target.closest("a[href]");
      if (link) {
        event.preventDefault();
        const href = link.getAttribute("href")!;
        const file = fileOf(href, store.session.peek()?.session.workspaceUri ?? "");
        void (file ? store.attempt("openFile", file) : store.attempt("openLink", { url: href }));
        return;
      }
      const button = target.closest("[data-act]");
      const text = button?.closest(".code")?.querySelector("pre code")?.textContent;
      if (!button || text == null) return;
      if (button.getAttribute("data-act") === "insert") void store.attempt("insertAtCursor", { text });
      else void store.attempt("copy", { text }).then(() => confirm(button));
    };
    element.addEventListener("click", onClick);
    // A middle click opens a link, too.
    element.addEventListener("auxclick", onClick);
    return () => {
      element.removeEventListener("click", onClick);
      element.removeEventListener("auxclick", onClick);
    };
  }, []);
}

/** A tick in the place of the icon, for a moment. */
function confirm(button: Element): void {
  button.classList.replace("codicon-copy", "codicon-check");
  setTimeout(() => button.classList.replace("codicon-check", "codicon-copy"), 1200);
}
