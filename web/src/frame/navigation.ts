import { create } from "zustand";
import { readStored, writeStored } from "../lib/storage";

interface NavigationState {
  /** On a wide screen: the side is shown. Remembered. */
  wideOpen: boolean;
  /** On a phone: the side lies over the page. Never remembered. */
  narrowOpen: boolean;
  toggle: () => void;
  closeNarrow: () => void;
}

const narrow = () => matchMedia("(max-width: 767px)").matches;

export const useNavigation = create<NavigationState>()((set) => ({
  wideOpen: readStored("side") !== "closed",
  narrowOpen: false,
  toggle() {
    if (narrow()) {
      set((state) => ({ narrowOpen: !state.narrowOpen }));
      return;
    }
    set((state) => {
      writeStored("side", state.wideOpen ? "closed" : undefined);
      return { wideOpen: !state.wideOpen };
    });
  },
  closeNarrow: () => set({ narrowOpen: false }),
}));
