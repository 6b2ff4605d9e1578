/** What the command palette offers: pages, sessions, and what can be done where the user is. */
import {
  Eraser,
  Keyboard,
  Languages,
  type LucideIcon,
  MessageSquare,
  Moon,
  PanelLeft,
  PanelRight,
  Plus,
  Square,
  Sun,
} from "lucide-react";
import { useTranslation } from "react-i18next";
import { clearView } from "../../store/cleared";
import { useNavigation } from "../../store/navigation";
import { agentPlaces, workPlaces } from "../../ui/places";
import { useTheme } from "../../ui/theme";
import { chooseLanguage } from "../../i18n";
import { baseName } from "../../lib/format";
import { usePanel } from "../../store/panel";
import { stopSession } from "../../store/controller";
import { useApp, useSessionList } from "../../store/hooks";
import { beginAfresh } from "../start/afresh";
import { go, goToPage, useRoute } from "../../store/route";
import type { Matchable } from "./match";

export interface Command extends Matchable {
  readonly key: string;
  readonly icon: LucideIcon;
  readonly note?: string;
  readonly keys?: readonly string[];
  readonly run: () => void;
}

export function useCommands(): Command[] {
  const { t, i18n } = useTranslation();
  const route = useRoute();
  const sessions = useSessionList();
  const current = useApp((state) => (route.view === "session" ? state.sessions.get(route.id) : undefined));
  const chooseTheme = useTheme((state) => state.choose);
  const places = [...workPlaces, ...agentPlaces].map(({ page, icon }): Command => ({
    key: page,
    icon,
    label: t(`place.${page}.name`),
    words: page,
    run: () => goToPage(page),
  }));
  const here: Command[] = current
    ? [
        ...(current.status === "running"
          ? [
              {
                key: "stop",
                icon: Square,
                label: t("palette.stop"),
                keys: ["Esc"],
                run: () => stopSession(current.id),
              },
            ]
          : []),
        {
          key: "clear",
          icon: Eraser,
          label: t("palette.clear"),
          keys: ["Ctrl", "L"],
          run: () => clearView(current.id, current.lastSeq),
        },
        {
          key: "panel",
          icon: PanelRight,
          label: t("palette.panel"),
          keys: ["Ctrl", "J"],
          run: () => usePanel.getState().toggle(),
        },
      ]
    : [];
  const otherLanguage = i18n.language === "zh-CN" ? "en" : "zh-CN";
  return [
    { key: "new", icon: Plus, label: t("nav.new"), keys: ["Alt", "N"], run: () => beginAfresh() },
    ...here,
    ...places,
    {
      key: "shortcuts",
      icon: Keyboard,
      label: t("place.shortcuts.name"),
      keys: ["?"],
      run: () => goToPage("shortcuts"),
    },
    {
      key: "side",
      icon: PanelLeft,
      label: t("palette.side"),
      keys: ["Ctrl", "B"],
      run: () => useNavigation.getState().toggle(),
    },
    { key: "light", icon: Sun, label: t("palette.light"), words: "theme", run: () => chooseTheme("light") },
    { key: "dark", icon: Moon, label: t("palette.dark"), words: "theme", run: () => chooseTheme("dark") },
    {
      key: "language",
      icon: Languages,
      label: t(`preferences.languages.${otherLanguage}`),
      words: "language 语言",
      run: () => void chooseLanguage(otherLanguage),
    },
    ...sessions.map((session): Command => ({
      key: session.id,
      icon: MessageSquare,
      label: session.title,
      words: `${session.cwd} ${session.lastPrompt ?? ""}`,
      note: baseName(session.cwd),
      run: () => go({ view: "session", id: session.id }),
    })),
  ];
}
