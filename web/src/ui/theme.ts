import { useSyncExternalStore } from "react";
import { create } from "zustand";
import { readStored, writeStored } from "../lib/storage";

export const themes = ["system", "light", "dark"] as const;
export type Theme = (typeof themes)[number];

interface ThemeState {
  theme: Theme;
  choose: (theme: Theme) => void;
}

/** `public/theme.js` applies the choice before the first paint; this keeps it. */
export const useTheme = create<ThemeState>()((set) => ({
  theme: themes.find((each) => each === readStored("theme")) ?? "system",
  choose(theme) {
    writeStored("theme", theme === "system" ? undefined : theme);
    set({ theme });
    apply(theme);
  },
}));

const systemDark = () => matchMedia("(prefers-color-scheme: dark)");

const isDark = (theme: Theme) => (theme === "system" ? systemDark().matches : theme === "dark");

/** All at once: what fades under the pointer would fade here as well, and what does not would be dark before it. */
function apply(theme: Theme): void {
  const { dataset } = document.documentElement;
  dataset.switching = "";
  const shown = isDark(theme) ? "dark" : "light";
  dataset.theme = shown;
  const around = document.querySelector<HTMLMetaElement>("meta[name=theme-color]");
  if (around) around.content = around.dataset[shown] ?? "";
  // The frame after the next one: by then the new colours have been painted.
  requestAnimationFrame(() => requestAnimationFrame(() => delete dataset.switching));
}

/** The page changes with the system where nothing else was chosen. */
export function followSystemTheme(): void {
  systemDark().addEventListener("change", () => {
    const { theme } = useTheme.getState();
    if (theme === "system") apply(theme);
  });
}

function onSystemChange(listener: () => void): () => void {
  const system = systemDark();
  system.addEventListener("change", listener);
  return () => system.removeEventListener("change", listener);
}

/** Whether the page is dark right now, by choice or by the system: for what can't follow the style sheet. */
export function useDark(): boolean {
  const theme = useTheme((state) => state.theme);
  return useSyncExternalStore(onSystemChange, () => isDark(theme));
}
