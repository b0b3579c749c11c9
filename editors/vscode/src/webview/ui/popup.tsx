/** Something that opens above the page beside its anchor, and closes on Escape, a click elsewhere or loss of focus. */
import type { ComponentChildren, RefObject } from "preact";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";

interface Props {
  anchor: RefObject<HTMLElement | null>;
  onClose(): void;
  children: ComponentChildren;
  class?: string;
  /** Which edge of the anchor it is flush with, where there is room. */
  align?: "start" | "end";
  role?: "dialog" | "presentation";
  label?: string;
}

interface Place { left: number; top?: number; bottom?: number; maxHeight: number; maxWidth: number }

const MARGIN = 6;

/** Below the anchor or above it, wherever there is more room, and inside the window. */
export function placeFor(anchor: DOMRect, size: { width: number; height: number }, page: { width: number; height: number }, align: "start" | "end"): Place {
  const above = anchor.top - 2 * MARGIN;
  const below = page.height - anchor.bottom - 2 * MARGIN;
  const wanted = align === "start" ? anchor.left : anchor.right - size.width;
  const left = Math.max(MARGIN, Math.min(wanted, page.width - size.width - MARGIN));
  const room = { left, maxWidth: page.width - 2 * MARGIN };
  if (below >= size.height || below >= above) return { ...room, top: anchor.bottom + MARGIN - 2, maxHeight: below };
  return { ...room, bottom: page.height - anchor.top + MARGIN - 2, maxHeight: above };
}

export function Popup({ anchor, onClose, children, class: more = "", align = "start", role = "dialog", label }: Props) {
  const self = useRef<HTMLDivElement>(null);
  const [place, setPlace] = useState<Place | null>(null);

  useLayoutEffect(() => {
    const arrange = () => {
      if (!anchor.current || !self.current) return;
      const { scrollWidth: width, scrollHeight: height } = self.current;
      setPlace(placeFor(anchor.current.getBoundingClientRect(), { width, height }, { width: innerWidth, height: innerHeight }, align));
    };
    arrange();
    addEventListener("resize", arrange);
    return () => removeEventListener("resize", arrange);
  }, [anchor, align]);

  useEffect(() => {
    const outside = (target: EventTarget | null) => target instanceof Node && !self.current?.contains(target) && !anchor.current?.contains(target);
    const press = (event: Event) => void (outside(event.target) && onClose());
    document.addEventListener("pointerdown", press, true);
    document.addEventListener("focusin", press, true);
    return () => {
      document.removeEventListener("pointerdown", press, true);
      document.removeEventListener("focusin", press, true);
    };
  }, [anchor, onClose]);

  useEffect(() => () => {
    // Only where the focus would be lost with the popup: a click elsewhere has given it to something else.
    if (!document.activeElement || document.activeElement === document.body) anchor.current?.focus();
  }, [anchor]);

  // Until it is measured it is there but not seen: what is in it can take the focus at once.
  const { left, top, bottom, maxHeight, maxWidth } = place ?? { left: 0, top: 0, maxHeight: innerHeight, maxWidth: innerWidth };
  const px = (value: number | undefined) => (value === undefined ? "auto" : `${value}px`);
  return (
    <div
      ref={self}
      class={`popup ${more}`}
      role={role}
      aria-label={label}
      style={{ left: px(left), top: px(top), bottom: px(bottom), maxHeight: px(maxHeight), maxWidth: px(maxWidth), opacity: place ? 1 : 0 }}
      onKeyDown={(event) => {
        if (event.key !== "Escape") return;
        event.stopPropagation();
        event.preventDefault();
        anchor.current?.focus();
        onClose();
      }}
    >
      {children}
    </div>
  );
}
