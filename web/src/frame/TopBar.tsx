import { Folder, PanelLeft } from "lucide-react";
import type { ReactNode } from "react";
import { useTranslation } from "react-i18next";
import type { SessionInfo } from "../gen/events";
import { cn } from "../lib/cn";
import { useApp } from "../store/hooks";
import { CopyButton } from "../ui/CopyButton";
import { IconButton } from "../ui/IconButton";
import { useNavigation } from "./navigation";
import { SessionMenu } from "./SessionEntry";
import { markOf, StatusMark } from "./StatusMark";

/** The bar above the content; the way back to the side when that is hidden. */
export function TopBar({ plain = false, children }: { plain?: boolean; children?: ReactNode }) {
  const { t } = useTranslation();
  const { wideOpen, toggle } = useNavigation();
  const waiting = useApp((state) => [...state.sessions.values()].some((session) => session.pending > 0));
  return (
    <header className={cn("flex h-13 shrink-0 items-center gap-2 px-3", !plain && "border-b border-line")}>
      <span className={cn("relative", wideOpen && "md:hidden")}>
        <IconButton label={t("nav.show")} onClick={toggle}>
          <PanelLeft className="size-4" />
        </IconButton>
        {waiting && (
          <span
            role="img"
            aria-label={t("nav.someoneWaits")}
            className="absolute top-1 right-1 size-2 rounded-full bg-wait ring-2 ring-canvas"
          />
        )}
      </span>
      {children}
    </header>
  );
}

export function SessionTopBar({ session }: { session: SessionInfo }) {
  const { t } = useTranslation();
  return (
    <TopBar>
      <StatusMark mark={markOf(session.status, session.pending)} className="ml-1" />
      <h1 className="min-w-0 flex-1 truncate text-sm font-semibold">{session.title}</h1>
      <div className="flex min-w-0 items-center gap-1 text-xs text-ink-3">
        <span className="hidden min-w-0 items-center gap-1.5 lg:flex" title={session.cwd}>
          <Folder className="size-3.5 shrink-0" aria-hidden />
          <span className="sr-only">{t("session.folder")}</span>
          <span className="max-w-72 truncate font-mono" dir="rtl">
            <bdi>{session.cwd}</bdi>
          </span>
        </span>
        <span className="mx-1.5 hidden h-4 w-px bg-line lg:block" />
        <span className="hidden items-center gap-0.5 sm:flex">
          <span className="sr-only">{t("session.id")}</span>
          <span className="font-mono">{session.id.slice(0, 8)}</span>
          <CopyButton text={session.id} label={t("session.copyId")} />
        </span>
        <SessionMenu session={session} always />
      </div>
    </TopBar>
  );
}
