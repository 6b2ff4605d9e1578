import { Menu, Plus, X } from "lucide-react";
import { useEffect, useRef } from "react";
import { useTranslation } from "react-i18next";
import { cn } from "../lib/cn";
import { useApp, usePending } from "../store/hooks";
import { useRoute } from "../store/route";
import { IconButton } from "../ui/IconButton";
import { useNavigation } from "../store/navigation";
import { SessionMark } from "../ui/StatusMark";
import { closeTab, useTabs } from "../store/tabs";

const tabClass = (current: boolean) =>
  cn(
    "relative flex h-8 items-center rounded-t-lg text-sm transition-colors pointer-coarse:h-9",
    current
      ? "bg-canvas font-medium text-ink after:absolute after:inset-x-0 after:-bottom-px after:h-px after:bg-canvas"
      : "text-ink-2 hover:bg-hover hover:text-ink",
    current ? "border-x border-t border-line" : "border-x border-t border-transparent",
  );

/** The open sessions, side by side. */
export function TabBar() {
  const { t } = useTranslation();
  const toggle = useNavigation((state) => state.toggle);
  const route = useRoute();
  const waiting = usePending() > 0;
  const open = useTabs((state) => state.open);
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
        {open.map((id) => (
          <SessionTab key={id} id={id} current={current === id} />
        ))}
      </ul>
    </header>
  );
}

function SessionTab({ id, current }: { id: string; current: boolean }) {
  const { t } = useTranslation();
  const session = useApp((state) => (state.leaving.has(id) ? undefined : state.sessions.get(id)));
  const place = useRef<HTMLLIElement>(null);
  const there = session !== undefined;
  useEffect(() => {
    if (current && there) place.current?.scrollIntoView({ block: "nearest", inline: "nearest" });
  }, [current, there]);
  // One that has been deleted has no tab; it comes back with its session when that is undone.
  if (!session) return null;
  return (
    <li ref={place} className={cn(tabClass(current), "group/tab max-w-52 min-w-40 shrink sm:min-w-28")}>
      <a
        href={`#/s/${id}`}
        aria-current={current ? "page" : undefined}
        onAuxClick={(event) => event.button === 1 && closeTab(id)}
        className="flex h-full min-w-0 items-center gap-1.5 rounded-t-lg pr-1 pl-2.5 -outline-offset-2"
      >
        <SessionMark session={session} />
        <span className="truncate">{session.title}</span>
      </a>
      <button
        type="button"
        aria-label={t("tabs.close", { title: session.title })}
        onClick={() => closeTab(id)}
        className={cn(
          "mr-1 flex size-5 shrink-0 items-center justify-center rounded text-ink-3 -outline-offset-2 hover:bg-active hover:text-ink pointer-coarse:size-7",
          !current &&
            "opacity-0 group-focus-within/tab:opacity-100 group-hover/tab:opacity-100 pointer-coarse:opacity-100",
        )}
      >
        <X className="size-3" aria-hidden />
      </button>
    </li>
  );
}
