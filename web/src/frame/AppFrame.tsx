import { Dialog } from "@base-ui/react/dialog";
import type { ReactNode } from "react";
import { useTranslation } from "react-i18next";
import { cn } from "../lib/cn";
import { backdropClass } from "../ui/Modal";
import { useNavigation } from "../store/navigation";
import { OfflineBar } from "./OfflineBar";
import { Rail } from "./Rail";
import { Sidebar } from "./Sidebar";
import { TabBar } from "./TabBar";

export function AppFrame({ children }: { children: ReactNode }) {
  const { t } = useTranslation();
  const { wideOpen, narrowOpen, closeNarrow } = useNavigation();
  return (
    <div className="flex h-full">
      <div className={cn("hidden shrink-0 border-r border-line md:block", wideOpen ? "w-66" : "w-13")}>
        {wideOpen ? <Sidebar /> : <Rail />}
      </div>
      <Dialog.Root open={narrowOpen} onOpenChange={(open) => !open && closeNarrow()}>
        <Dialog.Portal>
          <Dialog.Backdrop className={backdropClass} />
          <Dialog.Popup
            aria-label={t("nav.label")}
            className="fixed inset-y-0 left-0 z-40 w-76 max-w-[86vw] border-r border-line shadow-pop transition-transform duration-200 data-[ending-style]:-translate-x-full data-[starting-style]:-translate-x-full md:hidden"
          >
            <Sidebar />
          </Dialog.Popup>
        </Dialog.Portal>
      </Dialog.Root>
      <div className="flex min-w-0 flex-1 flex-col">
        <OfflineBar />
        <TabBar />
        <main className="flex min-h-0 min-w-0 flex-1 flex-col">{children}</main>
      </div>
    </div>
  );
}
