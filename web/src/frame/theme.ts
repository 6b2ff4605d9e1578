import { useSyncExternalStore } from "react";
import { create } from "zustand";
import { readStored, writeStored } from "../lib/storage";

export const themes = ["system", "light", "dark"] as const;
export type Theme = (typeof themes)[number];

interface ThemeState {
  theme: Theme;
  choose: (theme: Theme) => void;
}

/** `public/theme.js` applies the stored choice before the first paint; this keeps it. */
export const useTheme = create<ThemeState>()((set) => ({
  theme: themes.find((each) => each === readStored("theme")) ?? "system",
  choose(theme) {
    writeStored("theme", theme === "system" ? undefined : theme);
    if (theme === "system") delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = theme;
    set({ theme });
  },
}));

const systemDark = () => matchMedia("(prefers-color-scheme: dark)");

function onSystemChange(listener: () => void): () => void {
  const system = systemDark();
  system.addEventListener("change", listener);
  return () => system.removeEventListener("change", listener);
}

/** Whether the page is dark right now, by choice or by the system: for what can't follow the style sheet. */
export function useDark(): boolean {
  const theme = useTheme((state) => state.theme);
  const system = useSyncExternalStore(onSystemChange, () => systemDark().matches);
  return theme === "system" ? system : theme === "dark";
}
