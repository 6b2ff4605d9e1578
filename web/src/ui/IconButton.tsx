import { Tooltip } from "@base-ui/react/tooltip";
import type { ComponentProps, ReactNode } from "react";
import { cn } from "../lib/cn";

interface IconButtonProps extends ComponentProps<"button"> {
  label: string;
  children: ReactNode;
}

export const iconButtonClass =
  "inline-flex size-7 shrink-0 items-center justify-center rounded-md text-ink-3 transition-colors hover:bg-hover hover:text-ink disabled:pointer-events-none disabled:opacity-40 data-[popup-open]:bg-active data-[popup-open]:text-ink pointer-coarse:size-9";

/** A button that shows only a picture; its name is read aloud, and shown to those who hover. */
export function IconButton({ label, className, children, ...rest }: IconButtonProps) {
  return (
    <Tooltip.Root>
      <Tooltip.Trigger type="button" aria-label={label} className={cn(iconButtonClass, className)} {...rest}>
        {children}
      </Tooltip.Trigger>
      <Tooltip.Portal>
        <Tooltip.Positioner sideOffset={6} className="z-50">
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
