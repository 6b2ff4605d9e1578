import { create } from "zustand";
import { readStored, writeStored } from "../lib/storage";

interface PanelState {
  /** The panel beside the conversation is shown. Remembered where there is room for it. */
  readonly open: boolean;
  readonly toggle: () => void;
  readonly close: () => void;
}

const wide = () => matchMedia("(min-width: 1280px)").matches;

export const usePanel = create<PanelState>()((set, get) => ({
  open: wide() && readStored("panel") !== "closed",
  toggle() {
    const open = !get().open;
    if (wide()) writeStored("panel", open ? undefined : "closed");
    set({ open });
  },
  close: () => set({ open: false }),
}));

/** The place of the panel, also while it is fetched. */
export const panelClass =
  "absolute inset-y-0 right-0 z-20 flex w-80 max-w-[88vw] flex-col border-l border-line bg-side shadow-pop xl:static xl:shadow-none";
