/** What the command palette offers: sessions, what can be done where the user is, and pages. */
import {
  Archive,
  ArchiveRestore,
  Ban,
  Check,
  CheckCheck,
  Copy,
  Cpu,
  Eraser,
  GitFork,
  Keyboard,
  Languages,
  type LucideIcon,
  MessageSquare,
  Moon,
  PanelLeft,
  PanelRight,
  Pencil,
  Plus,
  Search,
  Shield,
  Square,
  SquareTerminal,
  Sun,
  Trash2,
} from "lucide-react";
import type { TFunction } from "i18next";
import { useTranslation } from "react-i18next";
import type { SessionInfo } from "../../gen/events";
import { clearView } from "../../store/cleared";
import { openDialog } from "../../store/dialogs";
import { openFind } from "../../store/finding";
import { useNavigation } from "../../store/navigation";
import { agentPlaces, workPlaces } from "../../ui/places";
import { useTheme } from "../../ui/theme";
import { chooseLanguage } from "../../i18n";
import { baseName } from "../../lib/format";
import type { Model } from "../../session/models";
import { permissionModes } from "../../session/modes";
import { useModels } from "../../store/models";
import { usePanel } from "../../store/panel";
import { configureSession, forkSession, stopSession } from "../../store/controller";
import { useApp, useSessionList } from "../../store/hooks";
import { decide, keyNames } from "../decisions/useDecisionPanel";
import { askToRemove, copySessionId, toggleArchived } from "../settings/sessionActions";
import { beginAfresh } from "../start/afresh";
import { go, goToPage, useRoute } from "../../store/route";
import type { Matchable } from "./match";

export type Group = "recent" | "session" | "go" | "look" | "sessions";

export interface Command extends Matchable {
  readonly key: string;
  readonly group: Group;
  readonly icon: LucideIcon;
  readonly note?: string;
  readonly keys?: readonly string[];
  readonly run: () => void;
}

/** How many sessions stand before everything else. */
const RECENT = 5;

export function useCommands(): Command[] {
  const { t, i18n } = useTranslation();
  const route = useRoute();
  const sessions = useSessionList();
  const current = useApp((state) => (route.view === "session" ? state.sessions.get(route.id) : undefined));
  const { models } = useModels(current?.id, current?.claudeSessionId);
  const chooseTheme = useTheme((state) => state.choose);
  const others = sessions.filter((session) => session !== current);
  const recent = others.filter((session) => !session.archived).slice(0, RECENT);
  const rest = others.filter((session) => !recent.includes(session));
  const open =
    (group: Group) =>
    (session: SessionInfo): Command => ({
      key: session.id,
      group,
      icon: MessageSquare,
      label: session.title,
      words: `${session.cwd} ${session.lastPrompt ?? ""}`,
      note: session.pending > 0 ? t("status.waiting") : baseName(session.cwd),
      run: () => go({ view: "session", id: session.id }),
    });
  const places = [...workPlaces, ...agentPlaces].map(({ page, icon }): Command => ({
    key: page,
    group: "go",
    icon,
    label: t(`place.${page}.name`),
    words: page,
    run: () => goToPage(page),
  }));
  const otherLanguage = i18n.language === "zh-CN" ? "en" : "zh-CN";
  return [
    ...recent.map(open("recent")),
    ...(current && !current.damaged ? verbs(t, current, models) : []),
    {
      key: "new",
      group: "go",
      icon: Plus,
      label: t("nav.new"),
      keys: ["Alt", "N"],
      run: () => beginAfresh(),
    },
    ...places,
    {
      key: "shortcuts",
      group: "go",
      icon: Keyboard,
      label: t("place.shortcuts.name"),
      keys: ["?"],
      run: () => goToPage("shortcuts"),
    },
    {
      key: "side",
      group: "look",
      icon: PanelLeft,
      label: t("palette.side"),
      keys: ["Ctrl", "B"],
      run: () => useNavigation.getState().toggle(),
    },
    {
      key: "light",
      group: "look",
      icon: Sun,
      label: t("palette.light"),
      words: "theme",
      run: () => chooseTheme("light"),
    },
    {
      key: "dark",
      group: "look",
      icon: Moon,
      label: t("palette.dark"),
      words: "theme",
      run: () => chooseTheme("dark"),
    },
    {
      key: "language",
      group: "look",
      icon: Languages,
      label: t(`preferences.languages.${otherLanguage}`),
      words: "language 语言",
      run: () => void chooseLanguage(otherLanguage),
    },
    ...rest.map(open("sessions")),
  ];
}

/** What can be done with the session in view. */
function verbs(t: TFunction, session: SessionInfo, models: readonly Model[]): Command[] {
  const { id, archived } = session;
  const verb = (key: string, icon: LucideIcon, label: string, run: () => void, more?: Partial<Command>) => ({
    key,
    group: "session" as const,
    icon,
    label,
    run,
    ...more,
  });
  const decisions = [
    verb("allow", Check, t("permission.allow"), () => decide("allow"), { keys: [keyNames.allow] }),
    verb("always", CheckCheck, t("permission.always"), () => decide("always"), { keys: [keyNames.always] }),
    verb("deny", Ban, t("permission.denyMore"), () => decide("deny"), { keys: [keyNames.deny] }),
  ];
  const chosenModel = session.settings.model;
  return [
    ...(session.pending > 0 ? decisions : []),
    ...(session.status === "running"
      ? [verb("stop", Square, t("palette.stop"), () => stopSession(id), { keys: ["Esc"] })]
      : []),
    verb("rename", Pencil, t("session.rename"), () => openDialog("rename", id)),
    ...(session.claudeSessionId ? [verb("fork", GitFork, t("session.fork"), () => forkSession(id))] : []),
    verb(
      "archive",
      archived ? ArchiveRestore : Archive,
      archived ? t("session.unarchive") : t("session.archive"),
      () => toggleArchived(session),
    ),
    ...permissionModes
      .filter((mode) => mode !== session.permissionMode)
      .map((mode) =>
        verb(
          `mode-${mode}`,
          Shield,
          t("palette.mode", { mode: t(`mode.${mode}.name`) }),
          () => configureSession(id, { permissionMode: mode }),
          { words: mode },
        ),
      ),
    ...models
      .filter(({ value }) => value !== chosenModel)
      .map(({ value, name }) =>
        verb(
          `model-${value}`,
          Cpu,
          t("palette.model", { model: name }),
          () => configureSession(id, { model: value }),
          { words: value },
        ),
      ),
    verb("find", Search, t("palette.find"), openFind, { keys: ["Ctrl", "F"], words: "search 搜索" }),
    verb("clear", Eraser, t("palette.clear"), () => clearView(id, session.lastSeq), { keys: ["Ctrl", "L"] }),
    verb("panel", PanelRight, t("palette.panel"), () => usePanel.getState().toggle(), {
      keys: ["Ctrl", "J"],
    }),
    ...(session.claudeSessionId
      ? [verb("terminal", SquareTerminal, t("session.terminal"), () => openDialog("terminal", id))]
      : []),
    verb("copyId", Copy, t("session.copyId"), () => copySessionId(session)),
    verb("delete", Trash2, t("session.delete"), () => askToRemove(session)),
  ];
}
