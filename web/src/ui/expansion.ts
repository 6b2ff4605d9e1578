/** What the user has opened or closed. Kept outside the rows, which come and go as the list scrolls. */
import { create } from "zustand";

interface ExpansionState {
  readonly open: ReadonlyMap<string, boolean>;
  readonly set: (key: string, open: boolean) => void;
}

const useExpansionStore = create<ExpansionState>()((set) => ({
  open: new Map(),
  set: (key, open) => set((state) => ({ open: new Map(state.open).set(key, open) })),
}));

export function useExpansion(key: string, initially: boolean): [boolean, () => void] {
  const open = useExpansionStore((state) => state.open.get(key)) ?? initially;
  const set = useExpansionStore((state) => state.set);
  return [open, () => set(key, !open)];
}

/** Opens something that is about to be shown. */
export const expand = (key: string): void => useExpansionStore.getState().set(key, true);
