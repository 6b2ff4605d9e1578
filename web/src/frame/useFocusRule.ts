import { useEffect } from "react";
import { focusComposer } from "../ui/focus";

/** A link to where the user already is opens nothing new, so nothing appears that would take the focus. */
export function useFocusRule(): void {
  useEffect(() => {
    function onClick(event: MouseEvent): void {
      const link = event.target instanceof Element ? event.target.closest("a[href]") : null;
      if (link && link.getAttribute("href") === location.hash) requestAnimationFrame(() => focusComposer());
    }
    addEventListener("click", onClick);
    return () => removeEventListener("click", onClick);
  }, []);
}
