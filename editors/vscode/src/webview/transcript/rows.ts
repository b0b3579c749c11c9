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

/** Where the user was: the row at the top, and how far it is scrolled out. Null: at the end. */
interface Place { sessionId: string; key: string; offset: number }

export interface Rows {
  items: VirtualItem[];
  atEnd: boolean;
  toEnd(): void;
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
  const made = useRef<Virtualizer<HTMLElement, HTMLElement> | null>(null);

  const options = {
    count: keys.length,
    getScrollElement: () => box.current,
    estimateSize: () => ESTIMATE,
    getItemKey: (index: number) => keys[index] ?? index,
    scrollToFn: elementScroll,
    observeElementRect,
    observeElementOffset,
    overscan: 4,
    anchorTo: "end" as const,
    followOnAppend: true,
    scrollEndThreshold: NEAR,
    paddingStart: 8,
    paddingEnd: 12,
    onChange: () => redraw(undefined),
  };
  const rows = (made.current ??= new Virtualizer<HTMLElement, HTMLElement>(options));
  rows.setOptions(options);

  useLayoutEffect(() => rows._didMount(), [rows]);
  useLayoutEffect(() => rows._willUpdate());
  const items = rows.getVirtualItems();
  useLayoutEffect(() => {
    if (size.current) size.current.style.height = `${rows.getTotalSize()}px`;
    if (place.current) place.current.style.transform = `translateY(${items[0]?.start ?? 0}px)`;
  });

  // The first drawing shows where the user was, and else the end.
  useLayoutEffect(() => {
    const before = kept.peek();
    const index = before?.sessionId === sessionId ? keys.indexOf(before.key) : -1;
    following.current = index < 0;
    if (index < 0) rows.scrollToEnd();
    else rows.scrollToOffset((rows.getOffsetForIndex(index, "start")?.[0] ?? 0) + before!.offset);
  }, [rows]);

  useEffect(() => {
    const element = box.current!;
    const remember = () => {
      const top = rows.getVirtualItemForOffset(element.scrollTop);
      const atEnd = rows.isAtEnd(NEAR);
      kept.value = atEnd || !top ? null : { sessionId, key: String(top.key), offset: Math.round(element.scrollTop - top.start) };
      if (atEnd !== following.current) {
        following.current = atEnd;
        redraw(undefined);
      }
    };
    let timer = 0;
    const onScroll = () => {
      clearTimeout(timer);
      timer = window.setTimeout(remember, 80);
    };
    element.addEventListener("scroll", onScroll, { passive: true });
    return () => {
      clearTimeout(timer);
      element.removeEventListener("scroll", onScroll);
    };
  }, [rows, sessionId]);

  return {
    items,
    atEnd: following.current,
    toEnd: useCallback(() => rows.scrollToEnd(), [rows]),
    size: useCallback((element: HTMLElement | null) => void (size.current = element), []),
    place: useCallback((element: HTMLElement | null) => void (place.current = element), []),
    measure: useCallback((element: HTMLElement | null) => rows.measureElement(element), [rows]),
  };
}
