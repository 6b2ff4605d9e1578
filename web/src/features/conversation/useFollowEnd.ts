import { type RefObject, useCallback, useEffect, useLayoutEffect, useRef, useState } from "react";

/** How near the end counts as being there for someone who scrolls down to it. */
const END_THRESHOLD = 80;

const LEAVING_KEYS = new Set(["ArrowUp", "PageUp", "Home"]);

/** How long what was clicked is held in its place: until its content is there, which may have to be fetched. */
const HOLD_MS = 500;

/** Something that was unfolded or folded up, and where it stood. */
interface Held {
  readonly element: Element;
  readonly top: number;
  readonly until: number;
}

/**
 * Keeps a list at its end for as long as the reader has not left it by their own hand. What grows, shrinks, is measured
 * late or takes room from below never counts as leaving: only a wheel, a finger, a key or the scroll bar does, and
 * unfolding something, which is to be read where it stands: what was clicked stays under the pointer.
 */
export function useFollowEnd(
  scroller: RefObject<HTMLElement | null>,
  content: RefObject<HTMLElement | null>,
): { away: boolean; toEnd: () => void; leave: () => void } {
  const following = useRef(true);
  const held = useRef<Held>(undefined);
  const [away, setAway] = useState(false);

  const settle = useCallback(() => {
    const list = scroller.current;
    if (!list) return;
    if (following.current) list.scrollTo({ top: list.scrollHeight });
    else if (held.current?.element.isConnected) {
      const moved = held.current.element.getBoundingClientRect().top - held.current.top;
      // By whole pixels: less is the browser's rounding.
      if (Math.abs(moved) >= 1) list.scrollBy({ top: moved });
    }
    setAway(!following.current && distance(list) > END_THRESHOLD);
  }, [scroller]);

  // After every drawing, because each may change what the end is.
  useLayoutEffect(settle);

  useEffect(() => {
    const list = scroller.current;
    if (!list || !content.current) return;
    let top = list.scrollTop;
    let finger = 0;
    let dragging = false;
    const leave = () => {
      if (list.scrollHeight > list.clientHeight) following.current = false;
    };
    const onScroll = () => {
      const down = list.scrollTop > top;
      if (dragging && list.scrollTop < top) leave();
      if (down && distance(list) <= END_THRESHOLD) following.current = true;
      top = list.scrollTop;
      setAway(!following.current && distance(list) > END_THRESHOLD);
    };
    const release = () => {
      held.current = undefined;
    };
    const hold = (element: Element) => {
      const own: Held = {
        element,
        top: element.getBoundingClientRect().top,
        until: performance.now() + HOLD_MS,
      };
      held.current = own;
      // A list that is too short to scroll may be longer in a moment.
      following.current = false;
      const keep = (now: number) => {
        if (held.current !== own) return;
        settle();
        if (now < own.until) {
          requestAnimationFrame(keep);
          return;
        }
        release();
        if (list.scrollHeight <= list.clientHeight) following.current = true;
      };
      requestAnimationFrame(keep);
    };
    const handlers = {
      scroll: onScroll,
      wheel: (event: WheelEvent) => {
        release();
        if (event.deltaY < 0) leave();
      },
      touchstart: (event: TouchEvent) => {
        finger = event.touches[0]?.clientY ?? 0;
      },
      touchmove: (event: TouchEvent) => {
        release();
        if ((event.touches[0]?.clientY ?? 0) > finger) leave();
      },
      keydown: (event: KeyboardEvent) => {
        if (event.target !== list) return;
        release();
        if (LEAVING_KEYS.has(event.key)) leave();
      },
      pointerdown: (event: PointerEvent) => {
        dragging = event.target === list;
        if (dragging) release();
      },
      click: (event: MouseEvent) => {
        const unfolded = event.target instanceof Element && event.target.closest("[aria-expanded]");
        if (unfolded) hold(unfolded);
      },
    };
    for (const [name, handler] of Object.entries(handlers))
      list.addEventListener(name, handler as EventListener, { passive: true });
    const sizes = new ResizeObserver(settle);
    sizes.observe(list);
    sizes.observe(content.current);
    return () => {
      for (const [name, handler] of Object.entries(handlers))
        list.removeEventListener(name, handler as EventListener);
      sizes.disconnect();
      release();
    };
  }, [scroller, content, settle]);

  const toEnd = useCallback(() => {
    following.current = true;
    held.current = undefined;
    settle();
  }, [settle]);
  /** Something else is to be read, wherever it stands. */
  const leave = useCallback(() => {
    following.current = false;
  }, []);
  return { away, toEnd, leave };
}

function distance(list: HTMLElement): number {
  return list.scrollHeight - list.scrollTop - list.clientHeight;
}
