import { PanelLeftClose, Plus } from "lucide-react";
import { useTranslation } from "react-i18next";
import { useApp, useSessionList } from "../store/hooks";
import { useRoute } from "../store/route";
import { IconButton } from "../ui/IconButton";
import { ConnectionMark } from "./ConnectionMark";
import { Logo } from "./Logo";
import { useNavigation } from "./navigation";
import { Preferences } from "./Preferences";
import { SessionEntry } from "./SessionEntry";

/** The left side: everything there is, and a way to begin something new. */
export function Sidebar() {
  const { t } = useTranslation();
  const { toggle, closeNarrow } = useNavigation();
  const route = useRoute();
  return (
    <nav aria-label={t("nav.sessions")} className="flex h-full flex-col bg-side">
      <div className="flex h-13 shrink-0 items-center gap-2.5 pr-2 pl-3.5">
        <Logo className="size-6" />
        <span className="flex-1 font-semibold tracking-tight">{t("app.name")}</span>
        <IconButton label={t("nav.hide")} onClick={toggle}>
          <PanelLeftClose className="size-4" />
        </IconButton>
      </div>
      <div className="px-2.5 pb-2">
        <a
          href="#/new"
          onClick={closeNarrow}
          aria-current={route.view === "start" ? "page" : undefined}
          className="flex h-8.5 items-center gap-2 rounded-lg border border-line-strong bg-raised px-2.5 text-sm font-medium shadow-card transition-colors hover:bg-hover"
        >
          <Plus className="size-4 text-ink-3" aria-hidden />
          {t("nav.new")}
        </a>
      </div>
      <SessionList />
      <div className="flex h-11 shrink-0 items-center gap-1 border-t border-line pr-2 pl-3.5">
        <ConnectionMark />
        <Preferences />
      </div>
    </nav>
  );
}

function SessionList() {
  const { t } = useTranslation();
  const listed = useApp((state) => state.listed);
  const sessions = useSessionList();
  const route = useRoute();
  const closeNarrow = useNavigation((state) => state.closeNarrow);
  return (
    <div className="min-h-0 flex-1 overflow-y-auto px-2.5 pb-3">
      <h2 className="px-2.5 pt-2 pb-1.5 text-xs font-medium text-ink-3">{t("nav.sessions")}</h2>
      {!listed && <ListSkeleton />}
      {listed && sessions.length === 0 && <p className="px-2.5 py-1 text-sm text-ink-3">{t("nav.empty")}</p>}
      <ul className="flex flex-col gap-px">
        {sessions.map((session) => (
          <SessionEntry
            key={session.id}
            session={session}
            current={route.view === "session" && route.id === session.id}
            onOpen={closeNarrow}
          />
        ))}
      </ul>
    </div>
  );
}

function ListSkeleton() {
  const { t } = useTranslation();
  return (
    <div role="status" aria-label={t("common.loading")} className="flex flex-col gap-3 px-2.5 py-2">
      {["w-4/5", "w-3/5", "w-2/3"].map((width) => (
        <span key={width} className={`h-3.5 animate-breathe rounded bg-active ${width}`} />
      ))}
    </div>
  );
}
