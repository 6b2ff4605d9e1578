import { type RefObject, useEffect } from "react";

const ALL = "found";
const CURRENT = "found-current";

/** Colours the words wherever they are drawn, without touching what is drawn; the row of the chosen one more strongly. */
export function useHighlight(scroller: RefObject<HTMLElement | null>, query: string, current: number): void {
  useEffect(() => {
    const list = scroller.current;
    // A browser that can't do this shows the rows all the same.
    if (!list || !("highlights" in CSS)) return undefined;
    const words = query.trim().toLowerCase();
    let frame = 0;
    const draw = () => {
      frame = 0;
      const [all, chosen]: [Range[], Range[]] = [[], []];
      for (const range of words === "" ? [] : rangesOf(list, words)) {
        const row = range.startContainer.parentElement?.closest("[data-index]");
        (row?.getAttribute("data-index") === String(current) ? chosen : all).push(range);
      }
      CSS.highlights.set(ALL, new Highlight(...all));
      CSS.highlights.set(CURRENT, new Highlight(...chosen));
    };
    draw();
    const observer = new MutationObserver(() => {
      frame ||= requestAnimationFrame(draw);
    });
    observer.observe(list, { childList: true, subtree: true, characterData: true });
    return () => {
      observer.disconnect();
      cancelAnimationFrame(frame);
      CSS.highlights.delete(ALL);
      CSS.highlights.delete(CURRENT);
    };
  }, [scroller, query, current]);
}

function* rangesOf(root: HTMLElement, words: string): Generator<Range> {
  const walker = document.createTreeWalker(root, NodeFilter.SHOW_TEXT);
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    const text = node.nodeValue?.toLowerCase() ?? "";
    for (let at = text.indexOf(words); at !== -1; at = text.indexOf(words, at + words.length)) {
      // A letter may be longer in lower case; then the place can't be told.
      if (at + words.length > (node.nodeValue?.length ?? 0)) break;
      const range = new Range();
      range.setStart(node, at);
      range.setEnd(node, at + words.length);
      yield range;
    }
  }
}
