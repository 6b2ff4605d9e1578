import { Copy, Ellipsis, GitFork, Pencil, RotateCcw, Undo2 } from "lucide-react";
import { use, useState } from "react";
import { useTranslation } from "react-i18next";
import { copyText } from "../../lib/clipboard";
import { cn } from "../../lib/cn";
import { formatMoment } from "../../lib/format";
import { onDemand } from "../../lib/onDemand";
import { timeOf } from "../../session/entries";
import { useSession } from "../../store/hooks";
import { store } from "../../store/state";
import { RawSource } from "../../tools/rawSource";
import { Dropdown, DropdownItem, DropdownSeparator } from "../../ui/Dropdown";
import { iconButtonClass } from "../../ui/IconButton";
import { toasts } from "../../ui/toasts";
import { beginEditing } from "./editing";
import { forkFrom, type Message, promptOf, report, resend } from "./goingBack";

/** Loaded by the first rewind. */
const RewindDialog = onDemand(
  async () => ({ default: (await import("./RewindDialog")).RewindDialog }),
  () => null,
);

/** Shown to those whose pointer or focus is on the row. */
const onRow = "opacity-0 group-focus-within/row:opacity-100 group-hover/row:opacity-100";

/** When a message was sent. */
export function MessageTime({
  sessionId,
  seqs,
  className,
}: {
  sessionId: string;
  seqs: readonly number[];
  className: string;
}) {
  const { i18n } = useTranslation();
  const source = use(RawSource);
  const transcript = source ?? store.getState().logs.get(sessionId)?.transcript;
  const at = timeOf(transcript?.entries ?? [], seqs[0]);
  if (at === undefined) return null;
  return (
    <time
      dateTime={new Date(at).toISOString()}
      className={cn("pointer-events-none absolute text-2xs text-ink-3 tabular-nums", onRow, className)}
    >
      {formatMoment(at, i18n.language)}
    </time>
  );
}

/** What can be done with a message. */
export function MessageMenu({
  sessionId,
  item,
  className,
}: {
  sessionId: string;
  item: Message;
  className: string;
}) {
  const { t } = useTranslation();
  // `undefined` until the dialog is wanted for the first time.
  const [rewinding, setRewinding] = useState<boolean>();
  const session = useSession(sessionId);
  // What comes from a transcript is not part of the session's own log.
  const own = use(RawSource) === undefined && item.parent === undefined;
  const prompt = own ? promptOf(sessionId, item) : undefined;
  const running = session?.status === "running";
  const known = session?.claudeSessionId !== undefined || session?.canUndoRewind === true;

  function copy(): void {
    copyText(item.text).then(
      () => toasts.add({ title: t("message.copied") }),
      () => toasts.add({ title: t("common.copyFailed"), type: "error" }),
    );
  }

  return (
    <>
      <Dropdown
        label={t("message.menu")}
        trigger={<Ellipsis className="size-3.5" />}
        triggerClassName={cn(
          iconButtonClass,
          "absolute right-9 sm:-right-9 data-[popup-open]:opacity-100 focus-visible:opacity-100 pointer-coarse:rounded-lg pointer-coarse:bg-raised pointer-coarse:shadow-card",
          onRow,
          className,
        )}
      >
        <DropdownItem icon={<Copy />} onSelect={copy}>
          {t("message.copy")}
        </DropdownItem>
        {prompt && known && (
          <>
            <DropdownSeparator />
            {item.kind === "prompt" && (
              <DropdownItem icon={<Pencil />} disabled={running} onSelect={() => beginEditing(item.key)}>
                {t("message.edit")}
              </DropdownItem>
            )}
            <DropdownItem
              icon={<RotateCcw />}
              disabled={running}
              onSelect={() =>
                resend(sessionId, prompt, prompt.text).catch((error: unknown) => report("edit.failed", error))
              }
            >
              {t("message.retry")}
            </DropdownItem>
            <DropdownItem
              icon={<GitFork />}
              onSelect={() =>
                forkFrom(sessionId, item).catch((error: Error) =>
                  toasts.add({ title: error.message, type: "error" }),
                )
              }
            >
              {t("message.fork")}
            </DropdownItem>
            <DropdownItem icon={<Undo2 />} disabled={running} onSelect={() => setRewinding(true)}>
              {t("message.rewind")}
            </DropdownItem>
          </>
        )}
      </Dropdown>
      {prompt && rewinding !== undefined && (
        <RewindDialog
          sessionId={sessionId}
          prompt={prompt}
          open={rewinding}
          onClose={() => setRewinding(false)}
        />
      )}
    </>
  );
}
