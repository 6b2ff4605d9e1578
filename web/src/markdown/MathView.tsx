import { memo, useEffect, useRef } from "react";
import { mathElement } from "./math";

/** A formula; its source until it has been set, and for good if it can't be. */
export const MathView = memo(function MathView({ tex, display }: { tex: string; display: boolean }) {
  const place = useRef<HTMLSpanElement>(null);
  useEffect(() => {
    let current = true;
    void mathElement(tex, display).then(
      (math) => {
        if (current && math) place.current?.replaceChildren(math);
      },
      // The source stays.
      () => {},
    );
    return () => {
      current = false;
    };
  }, [tex, display]);
  return (
    <span ref={place} className={display ? "block overflow-x-auto py-1 text-center" : undefined}>
      {tex}
    </span>
  );
});
