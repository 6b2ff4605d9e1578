/**
 * A start page that begins anew: empty, or with an example. What was typed there before is put aside, not dropped: a
 * message offers it for a while, and the up arrow brings it back at any time.
 */
import i18next from "i18next";
import type { MouseEvent } from "react";
import { create } from "zustand";
import { giveBackImages, takeImages } from "../../store/useImages";
import { readStored, writeStored } from "../../lib/storage";
import { UNDO_MS } from "../../store/controller";
import { go } from "../../store/route";
import { toasts } from "../../ui/toasts";

const DRAFT = "draft.new";
const ASIDE = "draft.aside";

const useTimes = create<{ readonly times: number }>()(() => ({ times: 0 }));

/** Changes whenever the page is to begin anew: it is the page's key. */
export const useBeginning = (): number => useTimes((state) => state.times);

const draw = () => useTimes.setState(({ times }) => ({ times: times + 1 }));

/** What was put aside last. */
export const putAside = (): string | undefined => readStored(ASIDE);

export function beginAfresh(text?: string): void {
  const typed = readStored(DRAFT)?.trim() ?? "";
  const images = takeImages("new");
  writeStored(DRAFT, text);
  draw();
  go({ view: "start" });
  if (typed === text || (typed === "" && images.length === 0)) return;
  keepAside(typed, () => {
    const since = readStored(DRAFT);
    writeStored(DRAFT, since && since !== text ? `${typed}\n${since}` : typed);
    giveBackImages("new", images);
    draw();
    go({ view: "start" });
  });
}

/** Something else takes the place of what was typed, which `undo` brings back. */
export function keepAside(typed: string, undo: () => void): void {
  if (typed !== "") writeStored(ASIDE, typed);
  const toast = toasts.add({
    title: i18next.t("start.putAside"),
    timeout: UNDO_MS,
    actionProps: {
      children: i18next.t("common.undo"),
      onClick() {
        toasts.close(toast);
        undo();
      },
    },
  });
}

/** For links: one that is to be opened elsewhere is the browser's business. */
export function beginsAfresh(event: MouseEvent): void {
  if (event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) return;
  event.preventDefault();
  beginAfresh();
}
