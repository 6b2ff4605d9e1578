import { type ReactNode, useId } from "react";
import { useTranslation } from "react-i18next";
import { useExpansion } from "./expansion";

interface FoldProps {
  /** Names what is folded, for as long as the page lives. */
  id: string;
  lines: readonly string[];
  /** How many lines are shown while it is folded. */
  visible: number;
  children: (lines: readonly string[]) => ReactNode;
}

/** Long output shows its beginning; the rest is one click away. */
export function Fold({ id, lines, visible, children }: FoldProps) {
  const { t } = useTranslation();
  const [open, toggle] = useExpansion(`fold:${id}`, false);
  const content = useId();
  const hidden = lines.length - visible;
  // Folding a single line would take as much room as showing it.
  if (hidden <= 1) return children(lines);
  return (
    <>
      <div id={content}>{children(open ? lines : lines.slice(0, visible))}</div>
      <button
        type="button"
        aria-expanded={open}
        aria-controls={content}
        onClick={toggle}
        className="mx-2 mb-1.5 rounded-md px-2 py-1 text-xs font-medium text-accent hover:bg-hover"
      >
        {open ? t("fold.less") : t("fold.more", { count: hidden })}
      </button>
    </>
  );
}
