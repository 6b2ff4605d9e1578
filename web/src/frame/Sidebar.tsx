import { ChevronRight, MessageSquare, PanelLeftClose, Plus, Search } from "lucide-react";
import { useId } from "react";
import { useTranslation } from "react-i18next";
import { cn } from "../lib/cn";
import { openPalette } from "../store/palette";
import { beginsAfresh } from "../features/start/afresh";
import { usePending } from "../store/queue";
import { useRoute } from "../store/route";
import { IconButton } from "../ui/IconButton";
import { ConnectionMark } from "./ConnectionMark";
import { Count } from "./Count";
import { Logo } from "./Logo";
import { useNavigation } from "../store/navigation";
import { agentPlaces, type Place, workPlaces } from "../ui/places";
import { Preferences } from "./Preferences";
import { SessionList } from "./SessionList";

const entryClass = (current: boolean) =>
  cn(
    "flex h-7.5 items-center gap-2.5 rounded-lg px-2.5 text-sm transition-colors pointer-coarse:h-10",
    current ? "bg-active font-medium text-ink" : "text-ink-2 hover:bg-hover hover:text-ink",
  );

/** The left side: where one can go, everything there is, and a way to begin something new. */
export function Sidebar() {
  const { t } = useTranslation();
  const { toggle, closeNarrow } = useNavigation();
  const route = useRoute();
  const working = route.view === "session" || route.view === "latest";
  return (
    <nav aria-label={t("nav.label")} className="flex h-full flex-col bg-side">
      <div className="flex h-11 shrink-0 items-center gap-2.5 pr-2 pl-3.5">
        <Logo className="size-5.5" />
        <span className="flex-1 font-semibold tracking-tight">{t("app.name")}</span>
        <IconButton label={t("palette.open")} onClick={openPalette}>
          <Search className="size-4" />
        </IconButton>
        <IconButton label={t("nav.hide")} onClick={toggle}>
          <PanelLeftClose className="size-4" />
        </IconButton>
      </div>
      <div className="flex shrink-0 flex-col gap-px px-2.5 pt-1 pb-1">
        <a
          href="#/new"
          onClick={(event) => {
            closeNarrow();
            beginsAfresh(event);
          }}
          aria-current={route.view === "start" ? "page" : undefined}
          className="mb-1.5 flex h-8.5 items-center gap-2 rounded-lg border border-line-strong bg-raised px-2.5 text-sm font-medium shadow-card transition-colors hover:bg-hover pointer-coarse:h-10"
        >
          <Plus className="size-4 text-ink-3" aria-hidden />
          {t("nav.new")}
        </a>
        <a
          href="#/"
          onClick={closeNarrow}
          aria-current={working ? "page" : undefined}
          className={entryClass(working)}
        >
          <MessageSquare className="size-4 shrink-0 text-ink-3" aria-hidden />
          {t("nav.current")}
        </a>
        {workPlaces.map((place) => (
          <PlaceLink key={place.page} place={place} />
        ))}
      </div>
      <SessionList />
      <AgentPlaces />
      <div className="flex h-11 shrink-0 items-center gap-1 border-t border-line pr-2 pl-3.5">
        <ConnectionMark />
        <Preferences />
      </div>
    </nav>
  );
}

function PlaceLink({ place: { page, icon: Icon } }: { place: Place }) {
  const { t } = useTranslation();
  const route = useRoute();
  const pending = usePending();
  const closeNarrow = useNavigation((state) => state.closeNarrow);
  const current = route.view === "page" && route.page === page;
  return (
    <a
      href={`#/${page}`}
      onClick={closeNarrow}
      aria-current={current ? "page" : undefined}
      className={entryClass(current)}
    >
      <Icon className="size-4 shrink-0 text-ink-3" aria-hidden />
      <span className="flex-1 truncate">{t(`place.${page}.name`)}</span>
      {page === "inbox" && pending > 0 && <Count value={pending} />}
    </a>
  );
}

/** What Claude Code is and has; can be folded away in favour of the sessions. */
function AgentPlaces() {
  const { t } = useTranslation();
  const { agentOpen, toggleAgent } = useNavigation();
  const list = useId();
  return (
    <div className="shrink-0 border-t border-line px-2.5 py-1.5">
      <button
        type="button"
        aria-expanded={agentOpen}
        aria-controls={list}
        onClick={toggleAgent}
        className="flex h-7 w-full items-center gap-1 rounded-lg px-2.5 text-xs font-medium text-ink-3 hover:text-ink pointer-coarse:h-10"
      >
        {t("nav.agent")}
        <ChevronRight className={cn("size-3 transition-transform", agentOpen && "rotate-90")} aria-hidden />
      </button>
      <div id={list} className={cn("flex-col gap-px", agentOpen ? "flex" : "hidden")}>
        {agentPlaces.map((place) => (
          <PlaceLink key={place.page} place={place} />
        ))}
      </div>
    </div>
  );
}
