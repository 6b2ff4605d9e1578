import { ChevronDown, Menu, Pin, Plus, X } from "lucide-react";
import { useEffect, useRef } from "react";
import { useTranslation } from "react-i18next";
import { cn } from "../lib/cn";
import { tellOffline } from "../features/settings/offline";
import { pinSession } from "../store/arrange";
import { useApp } from "../store/hooks";
import { usePending } from "../store/queue";
import { go, useRoute } from "../store/route";
import { Dropdown, DropdownItem } from "../ui/Dropdown";
import { IconButton, iconButtonClass } from "../ui/IconButton";
import { useNavigation } from "../store/navigation";
import { SessionMark } from "../ui/StatusMark";
import { closeTab, keepTab, type Tab, useTabList } from "../store/tabs";

const tabClass = (current: boolean) =>
  cn(
    "relative flex h-8 items-center rounded-t-lg text-sm transition-colors pointer-coarse:h-9",
    current
      ? "bg-canvas font-medium text-ink after:absolute after:inset-x-0 after:-bottom-px after:h-px after:bg-canvas"
      : "text-ink-2 hover:bg-hover hover:text-ink",
    current ? "border-x border-t border-line" : "border-x border-t border-transparent",
  );

/** With more tabs than this some may be out of sight: a menu has all of them. */
const IN_SIGHT = 5;

/** The sessions that are pinned or were opened on purpose, and the one that is looked at. */
export function TabBar() {
  const { t } = useTranslation();
  const toggle = useNavigation((state) => state.toggle);
  const route = useRoute();
  const waiting = usePending() > 0;
  const tabs = useTabList();
  const current = route.view === "session" ? route.id : route.view === "start" ? "new" : undefined;

  return (
    <header className="flex h-11 shrink-0 items-end border-b border-line bg-side pl-1 md:pl-2">
      <span className="relative mb-1 flex self-center md:hidden">
        <IconButton label={t("nav.show")} onClick={toggle}>
          <Menu className="size-4.5" />
        </IconButton>
        {waiting && (
          <span
            role="img"
            aria-label={t("nav.someoneWaits")}
            className="absolute top-1 right-1 size-2 pointer-coarse:top-2 pointer-coarse:right-2 rounded-full bg-wait ring-2 ring-side"
          />
        )}
      </span>
      <ul
        aria-label={t("tabs.label")}
        className="-mb-px flex min-w-0 flex-1 items-end gap-1 overflow-x-auto overflow-y-hidden px-1 pb-px [scrollbar-width:none]"
      >
        <li className={cn(tabClass(current === "new"), "shrink-0")}>
          <a
            href="#/new"
            aria-current={current === "new" ? "page" : undefined}
            className="flex h-full items-center gap-1.5 rounded-t-lg px-3 -outline-offset-2"
          >
            <Plus className="size-3.5 text-ink-3" aria-hidden />
            {t("tabs.new")}
          </a>
        </li>
        {tabs.map((tab) => (
          <SessionTab key={tab.id} tab={tab} current={current === tab.id} />
        ))}
      </ul>
      {tabs.length > IN_SIGHT && (
        <span className="mb-1 flex shrink-0 self-center px-1">
          <Dropdown
            label={t("tabs.all")}
            trigger={<ChevronDown className="size-4" />}
            triggerClassName={iconButtonClass}
          >
            {tabs.map((tab) => (
              <TabItem key={tab.id} id={tab.id} />
            ))}
          </Dropdown>
        </span>
      )}
    </header>
  );
}

const useShown = (id: string) =>
  useApp((state) => (state.leaving.has(id) ? undefined : state.sessions.get(id)));

function TabItem({ id }: { id: string }) {
  const session = useShown(id);
  if (!session) return null;
  return (
    <DropdownItem icon={<SessionMark session={session} />} onSelect={() => go({ view: "session", id })}>
      <span className="max-w-72 truncate">{session.title}</span>
    </DropdownItem>
  );
}

function SessionTab({ tab: { id, kind }, current }: { tab: Tab; current: boolean }) {
  const { t } = useTranslation();
  const session = useShown(id);
  const place = useRef<HTMLLIElement>(null);
  const there = session !== undefined;
  useEffect(() => {
    if (current && there) place.current?.scrollIntoView({ block: "nearest", inline: "nearest" });
  }, [current, there]);
  // One that has been deleted has no tab; it comes back with its session when that is undone.
  if (!session) return null;
  const pinned = kind === "pinned";
  return (
    <li ref={place} className={cn(tabClass(current), "group/tab max-w-56 min-w-36 shrink-0 basis-44")}>
      <a
        href={`#/s/${id}`}
        aria-current={current ? "page" : undefined}
        title={session.title}
        onDoubleClick={() => keepTab(id)}
        onAuxClick={(event) => event.button === 1 && !pinned && closeTab(id)}
        className="flex h-full min-w-0 flex-1 items-center gap-1.5 rounded-t-lg pr-1 pl-2.5 -outline-offset-2"
      >
        <SessionMark session={session} />
        {/* What is only looked at is written as if in passing: the next session takes its tab. */}
        <span className={cn("truncate", kind === "visited" && "italic")}>{session.title}</span>
      </a>
      <button
        type="button"
        aria-label={t(pinned ? "tabs.unpin" : "tabs.close", { title: session.title })}
        onClick={() => (pinned ? pinSession(id, false) || tellOffline() : closeTab(id))}
        className={cn(
          "mr-1 flex size-5 shrink-0 items-center justify-center rounded text-ink-3 -outline-offset-2 hover:bg-active hover:text-ink pointer-coarse:size-7",
          !current &&
            !pinned &&
            "opacity-0 group-focus-within/tab:opacity-100 group-hover/tab:opacity-100 pointer-coarse:opacity-100",
        )}
      >
        {pinned ? <Pin className="size-3" aria-hidden /> : <X className="size-3" aria-hidden />}
      </button>
    </li>
  );
}
