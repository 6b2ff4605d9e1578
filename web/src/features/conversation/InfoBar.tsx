import { FileDiff, FolderLock, PanelRight } from "lucide-react";
import { memo } from "react";
import { useTranslation } from "react-i18next";
import { useBeginsAnew } from "./beginsAnew";
import type { SessionInfo } from "../../gen/events";
import { cn } from "../../lib/cn";
import { baseName } from "../../lib/format";
import { usePanel } from "../../store/panel";
import { isChanges, toggleChanges, usePanes } from "../../store/panes";
import { CopyButton } from "../../ui/CopyButton";
import { IconButton } from "../../ui/IconButton";
import { SandboxField } from "../settings/SandboxField";
import { SessionMenu } from "../settings/SessionMenu";
import { StatusMark, useMark } from "../../ui/StatusMark";
import { ToolsField } from "../settings/ToolsField";

/** What a session works with: its folder, its id, its tools. */
export const InfoBar = memo(function InfoBar({ session, beside }: { session: SessionInfo; beside: boolean }) {
  const { t } = useTranslation();
  const panel = usePanel();
  const panelOpen = beside ? panel.over === session.id : panel.open;
  const changesOpen = usePanes(({ panes }) => panes.some((pane) => isChanges(pane, session.id)));
  const anew = useBeginsAnew(session.id);
  const mark = useMark(session);
  return (
    <div
      role="group"
      aria-label={t("info.label")}
      className="@container flex h-10 shrink-0 items-center gap-2 overflow-hidden border-b pointer-coarse:h-12 border-line pr-1.5 pl-3 text-xs text-ink-3 sm:pl-4"
    >
      <h1 className="sr-only">{session.title}</h1>
      <StatusMark mark={mark} />
      <span className="flex min-w-0 items-center gap-1.5" title={session.cwd}>
        <FolderLock className="size-3.5 shrink-0" aria-hidden />
        <span className="sr-only">{t("session.folder")}</span>
        <span className="hidden min-w-0 truncate font-mono @4xl:block" dir="rtl">
          <bdi>{session.cwd}</bdi>
        </span>
        <span className="truncate font-mono @4xl:hidden">{baseName(session.cwd)}</span>
      </span>
      <Divider />
      <span className="hidden shrink-0 items-center gap-0.5 @md:flex">
        <span className="sr-only">{t("session.id")}</span>
        {anew ? (
          <span>{t("nav.new")}</span>
        ) : (
          <>
            <span className="font-mono">{session.id.slice(0, 8)}</span>
            <CopyButton text={session.id} label={t("session.copyId")} />
          </>
        )}
      </span>
      <Divider />
      <ToolsField session={session} />
      <SandboxField session={session} />
      <span className="flex-1" />
      <IconButton
        label={changesOpen ? t("panes.hideChanges") : t("panes.changes")}
        aria-pressed={changesOpen}
        onClick={() => toggleChanges(session.id)}
      >
        <FileDiff className={cn("size-4", changesOpen && "text-accent")} />
      </IconButton>
      <IconButton
        label={panelOpen ? t("panel.hide") : t("panel.show")}
        aria-pressed={panelOpen}
        onClick={panel.toggle}
      >
        <PanelRight className={cn("size-4", panelOpen && "text-accent")} />
      </IconButton>
      <SessionMenu session={session} always />
    </div>
  );
});

const Divider = () => <span className="hidden h-4 w-px shrink-0 bg-line @md:block" />;
