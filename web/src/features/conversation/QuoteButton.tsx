import { Quote } from "lucide-react";
import { type RefObject, useEffect, useState } from "react";
import { useTranslation } from "react-i18next";
import { Button } from "../../ui/Button";
import { quote } from "./quotes";

interface Chosen {
  readonly text: string;
  readonly top: number;
  readonly left: number;
}

/** Beside words that were selected in the conversation: takes them into the message. */
export function QuoteButton({
  sessionId,
  scroller,
}: {
  sessionId: string;
  scroller: RefObject<HTMLElement | null>;
}) {
  const { t } = useTranslation();
  const [chosen, setChosen] = useState<Chosen>();

  useEffect(() => {
    const look = () => setChosen(selectionIn(scroller.current));
    const forget = () => setChosen(undefined);
    // When the selection has been made, not while it grows.
    document.addEventListener("pointerup", look);
    document.addEventListener("keyup", look);
    document.addEventListener("scroll", forget, { capture: true, passive: true });
    return () => {
      document.removeEventListener("pointerup", look);
      document.removeEventListener("keyup", look);
      document.removeEventListener("scroll", forget, { capture: true });
    };
  }, [scroller]);

  if (!chosen) return null;
  return (
    <Button
      size="sm"
      className="fixed z-30 animate-rise shadow-pop"
      style={{ top: chosen.top, left: chosen.left }}
      // The selection would be gone before the click.
      onPointerDown={(event) => event.preventDefault()}
      onClick={() => {
        quote(sessionId, chosen.text);
        getSelection()?.removeAllRanges();
        setChosen(undefined);
      }}
    >
      <Quote className="size-3.5" aria-hidden />
      {t("composer.quote")}
    </Button>
  );
}

function selectionIn(list: HTMLElement | null): Chosen | undefined {
  const selection = getSelection();
  const text = selection?.toString() ?? "";
  if (!list || !selection || selection.rangeCount === 0 || text.trim() === "") return undefined;
  if (!list.contains(selection.anchorNode) || !list.contains(selection.focusNode)) return undefined;
  const area = selection.getRangeAt(0).getBoundingClientRect();
  const frame = list.getBoundingClientRect();
  return {
    text,
    top: Math.max(frame.top + 4, area.top - 36),
    left: Math.min(Math.max(frame.left + 4, area.left), frame.right - 120),
  };
}
