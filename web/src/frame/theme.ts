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
