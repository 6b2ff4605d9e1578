import { type RefObject, useCallback, useEffect, useLayoutEffect, useRef, useState } from "react";

/** How near the end counts as being there for someone who scrolls down to it. */
const END_THRESHOLD = 80;

const LEAVING_KEYS = new Set(["ArrowUp", "PageUp", "Home"]);

/**
 * Keeps a list at its end for as long as the reader has not left it by their own hand. What grows, shrinks, is measured
 * late or takes room from below never counts as leaving: only a wheel, a finger, a key or the scroll bar does, and
 * unfolding something, which is to be read where it stands.
 */
export function useFollowEnd(
  scroller: RefObject<HTMLElement | null>,
  content: RefObject<HTMLElement | null>,
): { away: boolean; toEnd: () => void } {
  const following = useRef(true);
  const [away, setAway] = useState(false);

  const settle = useCallback(() => {
    const list = scroller.current;
    if (!list) return;
    if (following.current) list.scrollTo({ top: list.scrollHeight });
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
    const handlers = {
      scroll: onScroll,
      wheel: (event: WheelEvent) => event.deltaY < 0 && leave(),
      touchstart: (event: TouchEvent) => {
        finger = event.touches[0]?.clientY ?? 0;
      },
      touchmove: (event: TouchEvent) => (event.touches[0]?.clientY ?? 0) > finger && leave(),
      keydown: (event: KeyboardEvent) => LEAVING_KEYS.has(event.key) && event.target === list && leave(),
      pointerdown: (event: PointerEvent) => {
        dragging = event.target === list;
      },
      click: (event: MouseEvent) =>
        event.target instanceof Element && event.target.closest("[aria-expanded]") && leave(),
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
    };
  }, [scroller, content, settle]);

  const toEnd = useCallback(() => {
    following.current = true;
    settle();
  }, [settle]);
  return { away, toEnd };
}

function distance(list: HTMLElement): number {
  return list.scrollHeight - list.scrollTop - list.clientHeight;
}
