import { Box, ChevronDown } from "lucide-react";
import { useTranslation } from "react-i18next";
import type { SandboxInfo, SandboxLevel } from "../../gen/events";
import { cn } from "../../lib/cn";

/** What a person chooses. */
export interface Sandbox {
  level: SandboxLevel;
  hosts: readonly string[];
  folders: readonly string[];
}

export interface SandboxChoiceProps {
  value: Sandbox;
  onChange: (sandbox: Sandbox) => void;
  /** What the agent gets, with what it always needs. Unknown before there is a session. */
  effective?: SandboxInfo | undefined;
  /** Why there can be no sandbox here. */
  impossible?: string | undefined;
  /** Says what it is on a phone as well. */
  named?: boolean;
  className?: string;
}

/** What a button for the choice needs, and what stands in it. */
export function useSandboxButton({ value, named = false, className }: SandboxChoiceProps) {
  const { t } = useTranslation();
  return {
    "aria-label": t("sandbox.state", { level: t(`sandbox.level.${value.level}.name`) }),
    className: cn(
      "flex shrink-0 items-center gap-1.5 rounded-lg px-2 hover:bg-hover hover:text-ink data-[popup-open]:bg-active",
      className,
    ),
    children: (
      <>
        <Box className={cn("size-3.5 shrink-0", value.level !== "off" && "text-good")} aria-hidden />
        <span className={cn(!named && "hidden @2xl:inline")}>{t(`sandbox.level.${value.level}.short`)}</span>
        <ChevronDown className="size-3.5" aria-hidden />
      </>
    ),
  };
}

/** The button before it does anything. */
export function SandboxButton(props: SandboxChoiceProps) {
  return <button type="button" disabled {...useSandboxButton(props)} />;
}
