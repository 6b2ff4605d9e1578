import { create } from "zustand";
import { readStored, writeStored } from "../lib/storage";
import { isSplit } from "./panes";
import { currentRoute } from "./route";

interface PanelState {
  /** The panel beside the conversation is shown. Remembered where there is room for it. */
  readonly open: boolean;
  /** With sessions side by side: the session whose details lie over its pane. Never remembered. */
  readonly over: string | undefined;
  readonly toggle: () => void;
  readonly close: () => void;
}

const wide = () => matchMedia("(min-width: 1280px)").matches;

export const usePanel = create<PanelState>()((set, get) => ({
  open: wide() && readStored("panel") !== "closed",
  over: undefined,
  toggle() {
    const route = currentRoute();
    if (isSplit() && route.view === "session") {
      set({ over: get().over === route.id ? undefined : route.id });
      return;
    }
    const open = !get().open;
    if (wide()) writeStored("panel", open ? undefined : "closed");
    set({ open });
  },
  close: () => set(isSplit() ? { over: undefined } : { open: false }),
}));
