import { MessageSquare, PanelLeftOpen, Plus } from "lucide-react";
import type { MouseEvent, ReactNode } from "react";
import { Tooltip } from "@base-ui/react/tooltip";
import { useTranslation } from "react-i18next";
import { cn } from "../lib/cn";
import { beginsAfresh } from "../features/start/afresh";
import { usePending } from "../store/queue";
import { useRoute } from "../store/route";
import { IconButton } from "../ui/IconButton";
import { Count } from "./Count";
import { useNavigation } from "../store/navigation";
import { agentPlaces, type Place, workPlaces } from "../ui/places";
import { Preferences } from "./Preferences";

/** The navigation in pictures, for those who want the room. */
export function Rail() {
  const { t } = useTranslation();
  const toggle = useNavigation((state) => state.toggle);
  const route = useRoute();
  const pending = usePending();
  const working = route.view === "session" || route.view === "latest";
  const entry = ({ page, icon: Icon }: Place) => (
    <RailLink
      key={page}
      href={`#/${page}`}
      label={t(`place.${page}.name`)}
      current={route.view === "page" && route.page === page}
    >
      <Icon className="size-4.5" aria-hidden />
      {page === "inbox" && pending > 0 && <Count value={pending} className="absolute -top-1 -right-1" />}
    </RailLink>
  );
  return (
    <nav aria-label={t("nav.label")} className="flex h-full flex-col items-center gap-1 bg-side py-2">
      <IconButton label={t("nav.show")} onClick={toggle} className="size-9">
        <PanelLeftOpen className="size-4.5" />
      </IconButton>
      <RailLink href="#/new" label={t("nav.new")} current={route.view === "start"} onClick={beginsAfresh}>
        <Plus className="size-4.5" aria-hidden />
      </RailLink>
      <RailLink href="#/" label={t("nav.current")} current={working}>
        <MessageSquare className="size-4.5" aria-hidden />
      </RailLink>
      {workPlaces.map(entry)}
      <span className="my-1 h-px w-6 bg-line" />
      {agentPlaces.map(entry)}
      <span className="flex-1" />
      <Preferences />
    </nav>
  );
}

interface RailLinkProps {
  href: string;
  label: string;
  current: boolean;
  onClick?: (event: MouseEvent) => void;
  children: ReactNode;
}

function RailLink({ href, label, current, onClick, children }: RailLinkProps) {
  return (
    <Tooltip.Root>
      <Tooltip.Trigger
        render={
          <a
            href={href}
            onClick={onClick}
            aria-label={label}
            aria-current={current ? "page" : undefined}
            className={cn(
              "relative flex size-9 items-center justify-center rounded-lg transition-colors hover:bg-hover hover:text-ink",
              current ? "bg-active text-ink" : "text-ink-3",
            )}
          >
            {children}
          </a>
        }
      />
      <Tooltip.Portal>
        <Tooltip.Positioner side="right" sideOffset={8} className="z-50">
          <Tooltip.Popup
            aria-hidden
            className="rounded-md bg-ink px-2 py-1 text-xs font-medium text-canvas shadow-pop transition-opacity data-[ending-style]:opacity-0 data-[starting-style]:opacity-0"
          >
            {label}
          </Tooltip.Popup>
        </Tooltip.Positioner>
      </Tooltip.Portal>
    </Tooltip.Root>
  );
}
