import { create } from "zustand";

interface PaletteState {
  readonly open: boolean;
}

export const usePalette = create<PaletteState>()(() => ({ open: false }));
export const openPalette = (): void => usePalette.setState({ open: true });
export const closePalette = (): void => usePalette.setState({ open: false });
