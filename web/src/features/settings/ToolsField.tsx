import { Menu } from "@base-ui/react/menu";
import { Check, ChevronDown, Wrench } from "lucide-react";
import { useTranslation } from "react-i18next";
import type { SessionInfo } from "../../gen/events";
import { cn } from "../../lib/cn";
import { grantableTools, parseTools, toggleTool } from "../../session/tools";
import { configureSession } from "../../store/controller";

/** The tools of a session that run without asking; a change holds from the next turn on. */
export function ToolsField({ session }: { session: SessionInfo }) {
  return (
    <ToolsChoice
      value={parseTools(session.allowedTools)}
      onChange={(tools) => configureSession(session.id, { allowedTools: tools.join(",") || null })}
      className="h-7 text-xs text-ink-3"
    />
  );
}

interface ToolsChoiceProps {
  value: readonly string[];
  onChange: (tools: string[]) => void;
  /** Says what it is on a phone as well. */
  named?: boolean;
  className?: string;
}

export function ToolsChoice({ value, onChange, named = false, className }: ToolsChoiceProps) {
  const { t } = useTranslation();
  // Rules that were added elsewhere are shown and can be taken away.
  const rules = value.filter((each) => !(grantableTools as readonly string[]).includes(each));
  return (
    <Menu.Root>
      <Menu.Trigger
        aria-label={t("tools.label")}
        className={cn(
          "flex shrink-0 items-center gap-1.5 rounded-lg px-2 hover:bg-hover hover:text-ink data-[popup-open]:bg-active",
          className,
        )}
      >
        <Wrench className="size-3.5 shrink-0" aria-hidden />
        <span className={cn(!named && "hidden @2xl:inline")}>
          {value.length === 0 ? t("tools.none") : t("tools.some", { count: value.length })}
        </span>
        <ChevronDown className="size-3.5" aria-hidden />
      </Menu.Trigger>
      <Menu.Portal>
        <Menu.Positioner align="start" sideOffset={6} className="z-50">
          <Menu.Popup className="max-h-[min(28rem,var(--available-height))] w-64 overflow-y-auto rounded-lg border border-line bg-raised p-1 shadow-pop transition-opacity outline-none data-[ending-style]:opacity-0 data-[starting-style]:opacity-0">
            <Menu.Group>
              <Menu.GroupLabel className="px-2.5 pt-1.5 pb-1.5 text-xs text-ink-3">
                {t("tools.hint")}
              </Menu.GroupLabel>
              {[...grantableTools, ...rules].map((tool) => (
                <Menu.CheckboxItem
                  key={tool}
                  checked={value.includes(tool)}
                  closeOnClick={false}
                  onCheckedChange={() => onChange(toggleTool(value, tool))}
                  className="flex cursor-default items-center gap-2.5 rounded-md px-2.5 py-1.5 text-sm text-ink outline-none select-none data-[highlighted]:bg-hover pointer-coarse:py-2.5"
                >
                  <span
                    className={cn(
                      "flex size-4 shrink-0 items-center justify-center rounded border",
                      value.includes(tool) ? "border-accent bg-accent text-accent-ink" : "border-line-strong",
                    )}
                  >
                    {value.includes(tool) && <Check className="size-3" aria-hidden />}
                  </span>
                  <span className="min-w-0 font-mono text-xs break-all">{tool}</span>
                </Menu.CheckboxItem>
              ))}
            </Menu.Group>
          </Menu.Popup>
        </Menu.Positioner>
      </Menu.Portal>
    </Menu.Root>
  );
}
