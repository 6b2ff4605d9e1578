import { memo } from "react";
import { useTranslation } from "react-i18next";
import type { SessionInfo } from "../gen/events";
import { cn } from "../lib/cn";
import { baseName, formatAge } from "../lib/format";
import { useUnread } from "../store/seen";
import { SessionMenu } from "../features/settings/SessionMenu";
import { StatusMark, useMark } from "../ui/StatusMark";
import { useNow } from "../lib/useNow";

interface SessionEntryProps {
  session: SessionInfo;
  /** Where it stands in the list. */
  top: number;
  current: boolean;
  onOpen: () => void;
}

export const SessionEntry = memo(function SessionEntry({ session, top, current, onOpen }: SessionEntryProps) {
  const { t, i18n } = useTranslation();
  const now = useNow();
  const mark = useMark(session);
  const unread = useUnread(session) && !current;
  return (
    <li className="group absolute inset-x-0 top-0" style={{ transform: `translateY(${top}px)` }}>
      <a
        href={`#/s/${session.id}`}
        aria-current={current ? "page" : undefined}
        onClick={onOpen}
        className={cn(
          "flex gap-2.5 rounded-lg py-1.5 pr-9 pl-2.5 transition-colors",
          current ? "bg-active" : "hover:bg-hover",
        )}
      >
        <StatusMark mark={mark} className="mt-[3px]" />
        <span className="min-w-0 flex-1">
          <span className="flex items-center gap-1.5">
            <span className={cn("truncate text-sm text-ink", (current || unread) && "font-medium")}>
              {session.title}
            </span>
            {unread && (
              <span
                role="img"
                aria-label={t("status.unread")}
                className="size-1.5 shrink-0 rounded-full bg-accent"
              />
            )}
          </span>
          <span className="flex items-center gap-1.5 text-xs text-ink-3">
            {mark === "waiting" ? (
              <span className="truncate font-medium text-wait">{t("status.waiting")}</span>
            ) : mark === "damaged" ? (
              <span className="truncate font-medium text-bad">{t("status.damaged")}</span>
            ) : (
              <span className="truncate">{baseName(session.cwd)}</span>
            )}
            <span aria-hidden>·</span>
            <span className="shrink-0">{formatAge(session.updatedAt, now, i18n.language)}</span>
          </span>
        </span>
      </a>
      <SessionMenu session={session} />
    </li>
  );
});
