import { create } from "zustand";
import { readStored, writeStored } from "../lib/storage";

interface NavigationState {
  /** On a wide screen: the side shows words, not only pictures. Remembered. */
  wideOpen: boolean;
  /** On a phone: the side lies over the page. Never remembered. */
  narrowOpen: boolean;
  /** The entries about Claude Code are unfolded: the room is for the sessions until someone wants them. Remembered. */
  agentOpen: boolean;
  toggle: () => void;
  toggleAgent: () => void;
  closeNarrow: () => void;
}

const narrow = () => matchMedia("(max-width: 767px)").matches;

export const useNavigation = create<NavigationState>()((set) => ({
  wideOpen: readStored("side") !== "closed",
  narrowOpen: false,
  agentOpen: readStored("side.agent") === "open",
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
  toggleAgent: () =>
    set((state) => {
      writeStored("side.agent", state.agentOpen ? "closed" : "open");
      return { agentOpen: !state.agentOpen };
    }),
  closeNarrow: () => set({ narrowOpen: false }),
}));
