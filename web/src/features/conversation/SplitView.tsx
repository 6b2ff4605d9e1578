import { Columns2, X } from "lucide-react";
import { type FocusEvent, type KeyboardEvent, type PointerEvent, useEffect, useRef } from "react";
import { useTranslation } from "react-i18next";
import { cn } from "../../lib/cn";
import { onDemand } from "../../lib/onDemand";
import { Opening } from "../../ui/Opening";
import { isComplete } from "../../store/listing";
import { useApp, useSession } from "../../store/hooks";
import {
  activate,
  closePane,
  type Pane,
  resize,
  sessionOf,
  showSession,
  shown,
  usePanes,
} from "../../store/panes";
import { visitTab } from "../../store/tabs";
import { IconButton } from "../../ui/IconButton";
import { SessionMark } from "../../ui/StatusMark";
import { SessionView } from "./SessionView";

/** Only those who put something beside a session need these. */
const ChangesView = onDemand(
  async () => ({ default: (await import("../panel/ChangesView")).ChangesView }),
  Opening,
);
const EmptyPane = onDemand(async () => ({ default: (await import("./EmptyPane")).EmptyPane }), Opening);

/** What is shown side by side. On a narrow screen one pane at a time, with a way to the others. */
export function SplitView({ id }: { id: string }) {
  const { t } = useTranslation();
  const { panes, sizes, active } = shown(usePanes(), id);
  const area = useRef<HTMLDivElement>(null);
  useEffect(() => {
    showSession(id);
    visitTab(id);
  }, [id]);
  useClosedWithTheirSessions(id);
  if (panes.length === 1) return <SessionView id={id} />;
  return (
    <>
      <PaneSwitch panes={panes} active={active} />
      <div ref={area} className="flex min-h-0 min-w-0 flex-1 md:overflow-x-auto">
        {panes.map((pane, index) => {
          const size = sizes[index] ?? 1 / panes.length;
          return (
            // oxlint-disable-next-line react/no-array-index-key -- a pane is its place
            <div key={index} className="contents">
              {index > 0 && <Edge at={index - 1} area={area} size={sizes[index - 1] ?? 0} />}
              {/* The focus chooses the pane; nothing else happens here. */}
              {/* oxlint-disable-next-line jsx-a11y/no-noninteractive-element-interactions */}
              <section
                data-pane={index === active ? "active" : "other"}
                aria-label={t("panes.label", { place: index + 1, count: panes.length })}
                aria-current={index === active ? "true" : undefined}
                onFocus={(event) => index !== active && isOwn(event) && activate(index)}
                onPointerDown={() => activate(index)}
                // Shares of less than 1 together would leave room empty where only one pane is in sight.
                style={{ flexGrow: size * 100 }}
                className={cn(
                  "min-w-0 basis-0 flex-col md:flex md:min-w-88 md:[&_[role=log]_[data-index]]:px-4! md:[&_form]:px-4!",
                  index === active ? "flex" : "hidden",
                )}
              >
                <PaneBar pane={pane} at={index} active={index === active} />
                <PaneContent pane={pane} at={index} />
              </section>
            </div>
          );
        })}
      </div>
    </>
  );
}

/** What is drawn elsewhere, such as a menu, is not in the pane. */
const isOwn = (event: FocusEvent) => event.currentTarget.contains(event.target);

/** A pane whose session is gone goes with it. */
function useClosedWithTheirSessions(current: string): void {
  const panes = usePanes((state) => state.panes);
  const gone = useApp((state) =>
    panes.findIndex((pane) => {
      const id = sessionOf(pane);
      if (id === undefined || id === current || state.expected === id) return false;
      return state.leaving.has(id) || (isComplete(state.listing) && !state.sessions.has(id));
    }),
  );
  useEffect(() => {
    if (gone >= 0) closePane(gone);
  }, [gone]);
}

function PaneContent({ pane, at }: { pane: Pane; at: number }) {
  switch (pane.kind) {
    case "session":
      return <SessionView id={pane.id} beside />;
    case "changes":
      return <ChangesView id={pane.id} />;
    case "empty":
      return <EmptyPane at={at} />;
  }
}

function usePaneTitle(pane: Pane): string {
  const { t } = useTranslation();
  const session = useSession(sessionOf(pane) ?? "");
  const title = session?.title ?? t("common.loading");
  if (pane.kind === "empty") return t("panes.empty");
  return pane.kind === "changes" ? t("panes.changesOf", { title }) : title;
}

function PaneBar({ pane, at, active }: { pane: Pane; at: number; active: boolean }) {
  const { t } = useTranslation();
  const session = useSession(sessionOf(pane) ?? "");
  const title = usePaneTitle(pane);
  return (
    <header
      className={cn(
        "flex h-8 shrink-0 items-center gap-2 border-b border-line bg-side pr-1 pl-3 text-xs max-md:hidden",
        active ? "text-ink shadow-[inset_0_2px_0_0_var(--color-accent)]" : "text-ink-3",
      )}
    >
      {pane.kind === "session" && session ? (
        <SessionMark session={session} />
      ) : (
        <Columns2 className="size-3.5 shrink-0 text-ink-3" aria-hidden />
      )}
      <h2 className={cn("min-w-0 flex-1 truncate", active && "font-medium")}>{title}</h2>
      <IconButton label={t("panes.close", { title })} onClick={() => closePane(at)} className="size-6">
        <X className="size-3.5" />
      </IconButton>
    </header>
  );
}

/** On a narrow screen: which pane is in sight. */
function PaneSwitch({ panes, active }: { panes: readonly Pane[]; active: number }) {
  const { t } = useTranslation();
  return (
    <div
      role="group"
      aria-label={t("panes.switch")}
      className="flex shrink-0 gap-1 overflow-x-auto border-b border-line bg-side p-1 md:hidden"
    >
      {panes.map((pane, index) => (
        // oxlint-disable-next-line react/no-array-index-key -- a pane is its place
        <SwitchButton key={index} pane={pane} at={index} active={index === active} />
      ))}
      <IconButton label={t("panes.closeThis")} onClick={() => closePane(active)} className="ml-auto">
        <X className="size-4" />
      </IconButton>
    </div>
  );
}

function SwitchButton({ pane, at, active }: { pane: Pane; at: number; active: boolean }) {
  const title = usePaneTitle(pane);
  return (
    <button
      type="button"
      aria-pressed={active}
      onClick={() => activate(at)}
      className={cn(
        "h-9 min-w-0 shrink truncate rounded-md px-2.5 text-xs",
        active ? "bg-raised font-medium text-ink shadow-card" : "text-ink-2",
      )}
    >
      {title}
    </button>
  );
}

/** How far one press of an arrow key moves an edge. */
const STEP = 0.03;

/** The edge between two panes: dragged, or moved with the arrows. A double click makes the two equally wide. */
function Edge({
  at,
  area,
  size,
}: {
  at: number;
  area: React.RefObject<HTMLDivElement | null>;
  size: number;
}) {
  const { t } = useTranslation();

  function onPointerDown(event: PointerEvent<HTMLElement>): void {
    if (event.button !== 0) return;
    event.preventDefault();
    const edge = event.currentTarget;
    edge.setPointerCapture(event.pointerId);
    let last = event.clientX;
    const move = (moved: globalThis.PointerEvent) => {
      const width = area.current?.clientWidth ?? 0;
      if (width > 0) resize(at, (moved.clientX - last) / width);
      last = moved.clientX;
    };
    edge.addEventListener("pointermove", move);
    edge.addEventListener("lostpointercapture", () => edge.removeEventListener("pointermove", move), {
      once: true,
    });
  }

  function onKeyDown(event: KeyboardEvent): void {
    const step = event.key === "ArrowLeft" ? -STEP : event.key === "ArrowRight" ? STEP : undefined;
    if (step === undefined || event.altKey || event.ctrlKey || event.metaKey) return;
    event.preventDefault();
    resize(at, step);
  }

  function equal(): void {
    const { sizes } = usePanes.getState();
    resize(at, ((sizes[at + 1] ?? 0) - (sizes[at] ?? 0)) / 2);
  }

  return (
    // A separator that can be moved is a control.
    // oxlint-disable-next-line jsx-a11y/no-noninteractive-element-interactions
    <div
      role="separator"
      aria-orientation="vertical"
      aria-label={t("panes.edge")}
      aria-valuenow={Math.round(size * 100)}
      aria-valuemin={0}
      aria-valuemax={100}
      // oxlint-disable-next-line jsx-a11y/no-noninteractive-tabindex
      tabIndex={0}
      onPointerDown={onPointerDown}
      onKeyDown={onKeyDown}
      onDoubleClick={equal}
      className="relative z-10 hidden w-px shrink-0 cursor-col-resize touch-none bg-line outline-none after:absolute after:inset-y-0 after:-left-1 after:w-2.5 hover:bg-accent focus-visible:bg-accent focus-visible:shadow-[0_0_0_1px_var(--color-accent)] md:block"
    />
  );
}
