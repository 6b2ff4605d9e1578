import { memo } from "react";
import { useTranslation } from "react-i18next";
import type { SessionInfo } from "../gen/events";
import { cn } from "../lib/cn";
import { baseName, formatAge } from "../lib/format";
import { placementOf } from "../session/arrangement";
import { useApp } from "../store/hooks";
import { openBeside } from "../store/panes";
import { useQueue } from "../store/queue";
import { useUnread } from "../store/seen";
import { keepTab } from "../store/tabs";
import type { SectionKind } from "../store/sections";
import { SessionMenu } from "../features/settings/SessionMenu";
import { StatusMark, useMark } from "../ui/StatusMark";
import { useNow } from "../lib/useNow";
import type { DropMark } from "./useListDrag";
import type { RowMarks } from "./useListKeys";

interface SessionEntryProps {
  session: SessionInfo;
  kind: SectionKind;
  /** Where it stands in the list. */
  top: number;
  height: number;
  current: boolean;
  marks: RowMarks;
  /** Something is dragged here. */
  drop: DropMark["side"] | undefined;
  drag: React.ComponentProps<"li">;
  onOpen: () => void;
}

/** Below the name of its project a session needs one line; elsewhere the second one says where it belongs. */
export const hasTwoLines = (kind: SectionKind): boolean => kind !== "project" && kind !== "group";

export const SessionEntry = memo(function SessionEntry({
  session,
  kind,
  top,
  height,
  current,
  marks,
  drop,
  drag,
  onOpen,
}: SessionEntryProps) {
  const { t, i18n } = useTranslation();
  const now = useNow();
  const mark = useMark(session);
  const unread = useUnread(session) && !current;
  const tags = useApp((state) => placementOf(state.arrangement, session.id).tags);
  const age = formatAge(session.updatedAt, now, i18n.language);
  return (
    <li
      className="group absolute inset-x-0 top-0"
      style={{ transform: `translateY(${top}px)`, height }}
      {...drag}
    >
      <a
        href={`#/s/${session.id}`}
        draggable={false}
        aria-current={current ? "page" : undefined}
        onClick={(event) => {
          if (event.altKey) {
            event.preventDefault();
            openBeside({ kind: "session", id: session.id });
          }
          onOpen();
        }}
        onDoubleClick={() => keepTab(session.id)}
        {...marks}
        className={cn(
          "flex h-full gap-2.5 rounded-lg pr-9 pl-2.5 transition-colors -outline-offset-2",
          hasTwoLines(kind) ? "py-1.5" : "items-center",
          current ? "bg-active" : "hover:bg-hover",
          drop === "on" && "bg-accent-soft",
          drop === "before" && "shadow-[0_-2px_0_0_var(--color-accent)]",
          drop === "after" && "shadow-[0_2px_0_0_var(--color-accent)]",
        )}
      >
        <StatusMark mark={mark} className={cn(hasTwoLines(kind) && "mt-[3px]")} />
        <span className={cn("min-w-0 flex-1", !hasTwoLines(kind) && "flex items-center gap-2")}>
          <span className={cn("flex min-w-0 items-center gap-1.5", !hasTwoLines(kind) && "flex-1")}>
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
            {!hasTwoLines(kind) && <Tags tags={tags} most={1} />}
          </span>
          {hasTwoLines(kind) ? (
            <span className="flex items-center gap-1.5 text-xs text-ink-3">
              <Where session={session} damaged={mark === "damaged"} />
              <span aria-hidden>·</span>
              <span className="shrink-0">{age}</span>
              <Tags tags={tags} most={2} />
            </span>
          ) : (
            <span
              className={cn(
                "-mr-6 shrink-0 text-2xs text-ink-3 group-focus-within:invisible group-hover:invisible pointer-coarse:mr-0 pointer-coarse:visible!",
                mark === "damaged" && "font-medium text-bad",
              )}
            >
              {mark === "damaged" ? t("status.damaged") : age}
            </span>
          )}
        </span>
      </a>
      <SessionMenu session={session} />
    </li>
  );
});

/** The project, or what is wrong; and how much waits where it is more than one thing. */
function Where({ session, damaged }: { session: SessionInfo; damaged: boolean }) {
  const { t } = useTranslation();
  const count = useQueue(({ queue }) => queue.find(({ id }) => id === session.id)?.count ?? 0);
  return (
    <>
      {damaged ? (
        <span className="truncate font-medium text-bad">{t("status.damaged")}</span>
      ) : (
        <span className="truncate">{baseName(session.cwd)}</span>
      )}
      {count > 1 && <span className="shrink-0 font-medium text-wait">{t("list.requests", { count })}</span>}
    </>
  );
}

/** The title needs the room more. */
function Tags({ tags, most }: { tags: readonly string[]; most: number }) {
  if (tags.length === 0) return null;
  return (
    <span
      className="flex min-w-0 shrink-[4] items-center gap-1 text-2xs text-ink-3"
      title={tags.map((tag) => `#${tag}`).join(" ")}
    >
      {tags.slice(0, most).map((tag) => (
        <span key={tag} className="max-w-16 truncate">
          {`#${tag}`}
        </span>
      ))}
      {tags.length > most && <span className="shrink-0">{`+${tags.length - most}`}</span>}
    </span>
  );
}
