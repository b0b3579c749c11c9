/**
 * Which rows are in the page, by @tanstack/virtual-core: heights are measured as rows appear, what changes above
 * the user does not move what they read, and the end is followed while they are there.
 */
import { elementScroll, observeElementOffset, observeElementRect, Virtualizer, type VirtualItem } from "@tanstack/virtual-core";
import type { RefObject } from "preact";
import { useCallback, useEffect, useLayoutEffect, useReducer, useRef } from "preact/hooks";
import { useStore } from "../model/store";

/** So near to the end counts as being there, in pixels. */
const NEAR = 32;
const ESTIMATE = 96;

const estimateSize = () => ESTIMATE;

/** Where the user was: the row at the top, and how far it is scrolled out. Null: at the end. */
interface Place { sessionId: string; key: string; offset: number }

export interface Rows {
  items: VirtualItem[];
  /** The first row in sight. */
  top: number;
  atEnd: boolean;
  toEnd(): void;
  /** Brings a row into sight. */
  show(key: string): void;
  size: (element: HTMLElement | null) => void;
  place: (element: HTMLElement | null) => void;
  measure: (element: HTMLElement | null) => void;
}

export function useRows(box: RefObject<HTMLElement | null>, keys: readonly string[], sessionId: string): Rows {
  const kept = useStore().memory.kept<Place | null>("place", null);
  const [, redraw] = useReducer((n: number) => n + 1, 0);
  const size = useRef<HTMLElement | null>(null);
  const place = useRef<HTMLElement | null>(null);
  const following = useRef(true);
  const going = useRef<(() => void) | null>(null);
  const made = useRef<Virtualizer<HTMLElement, HTMLElement> | null>(null);

  const grow = () => {
    if (size.current) size.current.style.height = `${made.current!.getTotalSize()}px`;
  };
  // Another function means other rows to the library: then it looks at all of them again.
  const getItemKey = useCallback((index: number) => keys[index] ?? index, [keys]);
  const options = {
    count: keys.length,
    getScrollElement: () => box.current,
    estimateSize,
    getItemKey,
    scrollToFn: elementScroll,
    observeElementRect,
    observeElementOffset,
    overscan: 4,
    anchorTo: "end" as const,
    followOnAppend: true,
    scrollEndThreshold: NEAR,
    paddingStart: 8,
    paddingEnd: 12,
    onChange: () => {
      // At once: what is scrolled to right behind this has to be there.
      grow();
      redraw(undefined);
    },
  };
  const rows = (made.current ??= new Virtualizer<HTMLElement, HTMLElement>(options));
  rows.setOptions(options);

  useLayoutEffect(() => rows._didMount(), [rows]);
  useLayoutEffect(() => rows._willUpdate());
  const items = rows.getVirtualItems();
  useLayoutEffect(() => {
    grow();
    if (place.current) place.current.style.transform = `translateY(${items[0]?.start ?? 0}px)`;
  });

  // The first drawing shows where the user was, and else the end.
  useLayoutEffect(() => {
    const before = kept.peek();
    const index = before?.sessionId === sessionId ? keys.indexOf(before.key) : -1;
    following.current = index < 0;
    if (index < 0) rows.scrollToEnd();
    else going.current = goTo(rows, box.current!, index, before!.offset);
    return () => going.current?.();
  }, [rows]);

  useEffect(() => {
    const element = box.current!;
    let before = element.scrollTop;
    let timer = 0;
    const follow = (is: boolean) => {
      if (is === following.current) return;
      following.current = is;
      redraw(undefined);
    };
    // Only who scrolls up leaves the end; that the conversation has grown does not.
    const onScroll = () => {
      const top = element.scrollTop;
      if (element.scrollHeight - top - element.clientHeight <= NEAR) follow(true);
      else if (top < before) follow(false);
      before = top;
      clearTimeout(timer);
      timer = window.setTimeout(remember, 80);
    };
    const remember = () => {
      const top = rows.getVirtualItemForOffset(element.scrollTop);
      kept.value = following.current || !top ? null : { sessionId, key: String(top.key), offset: Math.round(element.scrollTop - top.start) };
    };
    const grown = new ResizeObserver(() => {
      if (following.current) element.scrollTop = element.scrollHeight;
    });
    grown.observe(size.current!);
    grown.observe(element);
    element.addEventListener("scroll", onScroll, { passive: true });
    return () => {
      clearTimeout(timer);
      grown.disconnect();
      element.removeEventListener("scroll", onScroll);
    };
  }, [rows, sessionId]);

  return {
    items,
    top: rows.range?.startIndex ?? 0,
    atEnd: following.current,
    toEnd: useCallback(() => {
      following.current = true;
      rows.scrollToEnd();
    }, [rows]),
    show: (key) => {
      const index = keys.indexOf(key);
      if (index < 0) return;
      following.current = false;
      going.current?.();
      going.current = goTo(rows, box.current!, index, -box.current!.clientHeight / 3);
    },
    size: useCallback((element: HTMLElement | null) => void (size.current = element), []),
    place: useCallback((element: HTMLElement | null) => void (place.current = element), []),
    measure: useCallback((element: HTMLElement | null) => rows.measureElement(element), [rows]),
  };
}

/**
 * Scrolls to `offset` pixels behind the top of a row. Heights are known only of rows that were drawn, so it takes some
 * drawings; the user's own scrolling ends it, and so does what is given back.
 */
function goTo(rows: Virtualizer<HTMLElement, HTMLElement>, box: HTMLElement, index: number, offset: number): () => void {
  let left = 30;
  let frame = 0;
  const stop = () => {
    cancelAnimationFrame(frame);
    for (const name of ["wheel", "pointerdown", "keydown"]) box.removeEventListener(name, stop);
  };
  const step = () => {
    const row = box.querySelector(`[data-index="${index}"]`);
    const off = row ? row.getBoundingClientRect().top - box.getBoundingClientRect().top + offset : Infinity;
    if (!row) rows.scrollToIndex(index, { align: "start" });
    else if (Math.abs(off) > 1) box.scrollTop += off;
    if (--left > 0) frame = requestAnimationFrame(step);
    else stop();
  };
  for (const name of ["wheel", "pointerdown", "keydown"]) box.addEventListener(name, stop, { passive: true });
  step();
  return stop;
}
