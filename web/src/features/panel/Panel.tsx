import { Dialog } from "@base-ui/react/dialog";
import { useTranslation } from "react-i18next";
import { onDemand } from "../../lib/onDemand";
import { useMedia } from "../../lib/useMedia";
import { usePanel } from "../../store/panel";
import { backdropClass } from "../../ui/Modal";
import type { SidePanelProps } from "./SidePanel";

const SidePanel = onDemand<SidePanelProps>(
  () => import("./SidePanel"),
  () => null,
);

/**
 * The panel beside a conversation; its place is kept until it is there. Where there is no room beside the conversation it lies
 * over it, as a dialog: Escape and a click beside it close it.
 */
export function Panel(props: SidePanelProps) {
  const { t } = useTranslation();
  const close = usePanel((state) => state.close);
  const beside = useMedia("(min-width: 80rem)");
  if (beside)
    return (
      <aside
        aria-label={t("panel.label")}
        className="flex w-80 shrink-0 flex-col border-l border-line bg-side"
      >
        <SidePanel {...props} />
      </aside>
    );
  return (
    <Dialog.Root open onOpenChange={(open) => !open && close()}>
      <Dialog.Portal>
        <Dialog.Backdrop className={backdropClass} />
        <Dialog.Popup
          aria-label={t("panel.label")}
          className="fixed inset-y-0 right-0 z-40 flex w-84 max-w-[88vw] flex-col border-l border-line bg-side shadow-pop transition-transform duration-200 data-[ending-style]:translate-x-full data-[starting-style]:translate-x-full"
        >
          <SidePanel {...props} />
        </Dialog.Popup>
      </Dialog.Portal>
    </Dialog.Root>
  );
}

/** Fetches it before it is asked for. */
export const preloadPanel = SidePanel.preload;
