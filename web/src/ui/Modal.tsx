import { Dialog } from "@base-ui/react/dialog";
import { X } from "lucide-react";
import { type ReactNode, useRef } from "react";
import { useTranslation } from "react-i18next";
import { cn } from "../lib/cn";
import { firstField, recoverFocus } from "./focus";
import { iconButtonClass } from "./IconButton";

interface ModalProps {
  open: boolean;
  onClose: () => void;
  title: string;
  description?: string;
  wide?: boolean;
  /** Whether a click beside it closes it. */
  dismissible?: boolean;
  children: ReactNode;
}

export const backdropClass =
  "fixed inset-0 z-40 bg-black/25 transition-opacity duration-150 data-[ending-style]:opacity-0 data-[starting-style]:opacity-0";

export function Modal({
  open,
  onClose,
  title,
  description,
  wide = false,
  dismissible = true,
  children,
}: ModalProps) {
  const { t } = useTranslation();
  const content = useRef<HTMLDivElement>(null);
  return (
    <Dialog.Root
      open={open}
      disablePointerDismissal={!dismissible}
      onOpenChange={(next) => !next && onClose()}
      onOpenChangeComplete={(next) => !next && recoverFocus()}
    >
      <Dialog.Portal>
        <Dialog.Backdrop className={backdropClass} />
        <Dialog.Popup
          initialFocus={() => firstField(content.current) ?? true}
          className={cn(
            "fixed top-1/2 left-1/2 z-40 flex max-h-[min(44rem,calc(100dvh-2rem))] w-[calc(100vw-2rem)] -translate-x-1/2 -translate-y-1/2 flex-col rounded-xl border border-line bg-raised shadow-pop transition duration-150 data-[ending-style]:scale-98 data-[ending-style]:opacity-0 data-[starting-style]:scale-98 data-[starting-style]:opacity-0",
            wide ? "max-w-3xl" : "max-w-md",
          )}
        >
          <div className="flex items-start gap-3 px-5 pt-4 pb-3">
            <div className="min-w-0 flex-1">
              <Dialog.Title className="text-base font-semibold tracking-tight">{title}</Dialog.Title>
              {description && (
                <Dialog.Description className="mt-0.5 text-sm text-ink-2">{description}</Dialog.Description>
              )}
            </div>
            <Dialog.Close aria-label={t("common.close")} className={cn(iconButtonClass, "-mr-1.5")}>
              <X className="size-4" />
            </Dialog.Close>
          </div>
          <div ref={content} className="min-h-0 flex-1 overflow-y-auto px-5 pb-5">
            {children}
          </div>
        </Dialog.Popup>
      </Dialog.Portal>
    </Dialog.Root>
  );
}
