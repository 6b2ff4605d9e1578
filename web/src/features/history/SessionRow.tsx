import { FileDiff, Folder, GitBranch, MessagesSquare, Play } from "lucide-react";
import { type ReactNode, useEffect } from "react";
import { useTranslation } from "react-i18next";
import type { Session } from "../../gen/history";
import { baseName, formatAge, formatCount } from "../../lib/format";
import { Badge } from "../../ui/Page";
import { lookUp } from "../../store/controller";
import { useApp } from "../../store/hooks";
import { isPartial } from "../../store/listing";
import { viewHref } from "./address";

/** Whether a conversation is one of our sessions. `asks`: also if it is not on the pages of the list that are loaded. */
export function useIsOurs(id: string, asks: boolean): boolean {
  const partial = useApp((state) => isPartial(state.listing));
  useEffect(() => {
    if (asks && partial) lookUp(id);
  }, [asks, partial, id]);
  return useApp((state) => state.sessions.has(id));
}

/** Whether a conversation goes on somewhere that is not here. */
export function useIsLive(session: Session): boolean {
  const isOurs = useIsOurs(session.id, session.live === true);
  return !isOurs && session.live === true;
}

export function LiveBadge() {
  const { t } = useTranslation();
  return (
    <Badge tone="good">
      <span className="mr-1 size-1.5 animate-breathe rounded-full bg-good" aria-hidden />
      {t("history.live")}
    </Badge>
  );
}

export function SessionRow({
  session,
  now,
  withProject,
}: {
  session: Session;
  now: number;
  withProject: boolean;
}) {
  const { t, i18n } = useTranslation();
  const live = useIsLive(session);
  const isOurs = useIsOurs(session.id, false);
  return (
    <div className="group/row flex items-center rounded-lg transition-colors hover:bg-hover">
      <a
        href={viewHref({ view: "session", id: session.id })}
        className="flex min-w-0 flex-1 flex-col gap-1 rounded-lg px-2.5 py-2.5 -outline-offset-2"
      >
        <span className="flex items-baseline gap-2">
          <span className="min-w-0 flex-1 truncate text-sm font-medium">
            {session.title || t("history.untitled")}
          </span>
          {live && <LiveBadge />}
          <time dateTime={session.last_active} className="shrink-0 text-xs text-ink-3 tabular-nums">
            {formatAge(Date.parse(session.last_active), now, i18n.language)}
          </time>
        </span>
        <span className="flex min-w-0 items-center gap-x-3.5 overflow-hidden text-xs text-ink-3">
          {withProject && (
            <Fact icon={<Folder aria-hidden />} title={session.project_path}>
              {baseName(session.project_path)}
            </Fact>
          )}
          <Fact icon={<MessagesSquare aria-hidden />}>
            {t("history.messages", {
              count: session.message_count,
              shown: formatCount(session.message_count, i18n.language),
            })}
          </Fact>
          {session.files_changed.length > 0 && (
            <Fact icon={<FileDiff aria-hidden />} title={session.files_changed.slice(0, 20).join("\n")}>
              {t("history.files", { count: session.files_changed.length })}
            </Fact>
          )}
          {session.git_branch && session.git_branch !== "HEAD" && (
            <Fact icon={<GitBranch aria-hidden />} hidden>
              {session.git_branch}
            </Fact>
          )}
          {session.models[0] && (
            <span className="hidden min-w-0 truncate font-mono text-2xs md:block">
              {session.models.at(-1)}
            </span>
          )}
        </span>
      </a>
      <a
        href={isOurs ? `#/s/${session.id}` : viewHref({ view: "session", id: session.id, goOn: true })}
        aria-label={t("history.continue.row", { title: session.title || t("history.untitled") })}
        className="mr-2 inline-flex h-7 shrink-0 items-center gap-1.5 rounded-lg border border-transparent px-2.5 text-xs font-medium text-ink-3 group-hover/row:border-line group-hover/row:bg-raised group-hover/row:text-ink-2 hover:text-ink! max-sm:size-9 max-sm:justify-center max-sm:p-0"
      >
        <Play className="size-3.5" aria-hidden />
        <span className="max-sm:hidden">{t("history.continue.send")}</span>
      </a>
    </div>
  );
}

function Fact({
  icon,
  title,
  hidden = false,
  children,
}: {
  icon: ReactNode;
  title?: string;
  /** Where there is little room. */
  hidden?: boolean;
  children: ReactNode;
}) {
  return (
    <span
      title={title}
      className={`min-w-0 shrink-0 items-center gap-1 [&_svg]:size-3.5 [&_svg]:shrink-0 ${hidden ? "hidden md:inline-flex" : "inline-flex"}`}
    >
      {icon}
      <span className="max-w-44 truncate">{children}</span>
    </span>
  );
}
