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
