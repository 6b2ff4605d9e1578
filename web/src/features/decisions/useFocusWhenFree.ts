import { type RefObject, useEffect, useRef } from "react";

/**
 * Takes the focus when nothing else has it, so that one key answers. A user who is typing keeps it: a letter that was
 * meant for the text must never approve anything.
 */
export function useFocusWhenFree<T extends HTMLElement>(): RefObject<T | null> {
  const ref = useRef<T>(null);
  useEffect(() => {
    if (document.activeElement === document.body) ref.current?.focus({ preventScroll: true });
  }, []);
  return ref;
}
