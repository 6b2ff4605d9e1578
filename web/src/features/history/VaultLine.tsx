import { Switch } from "@base-ui/react/switch";
import { Archive, RotateCcw } from "lucide-react";
import { useEffect, useId, useState } from "react";
import { useTranslation } from "react-i18next";
import type { Session, VaultState } from "../../gen/history";
import { formatBytes, formatCount } from "../../lib/format";
import { useLoaded } from "../../lib/useLoaded";
import { go } from "../../store/route";
import { Button } from "../../ui/Button";
import { Modal } from "../../ui/Modal";
import { toasts } from "../../ui/toasts";
import { viewAddress } from "./address";
import { getVault, restore, turnVault } from "../../wire/history";
import { useHistoryChanges } from "./live";
import { usePaged } from "./usePaged";

const ARCHIVED_AT_ONCE = 50;
/** How often to look while conversations are being archived. */
const ROUND_MS = 500;

/** How long the CLI keeps conversations, and the switch that makes them outlive it. */
export function VaultLine({ retentionDays }: { retentionDays: number | undefined }) {
  const { t, i18n } = useTranslation();
  const [loaded, reload] = useLoaded("vault", getVault);
  const [changed, setChanged] = useState<{ from: VaultState | undefined; to: VaultState }>();
  const [open, setOpen] = useState(false);
  const label = useId();
  useHistoryChanges(reload);
  const known = loaded.state === "ready" ? loaded.value : undefined;
  // What the switch led to holds until something newer is known.
  const vault = changed && changed.from === known ? changed.to : known;
  // The first round takes its time, and can be watched.
  useEffect(() => {
    if (!vault?.archiving) return;
    const soon = setTimeout(reload, ROUND_MS);
    return () => clearTimeout(soon);
  }, [vault, reload]);

  async function turn(enabled: boolean): Promise<void> {
    try {
      setChanged({ from: known, to: await turnVault(enabled) });
    } catch (error) {
      toasts.add({ title: (error as Error).message, type: "error" });
    }
  }

  if (!vault || retentionDays === undefined) return null;
  return (
    <div className="flex shrink-0 flex-wrap items-center gap-x-4 gap-y-1.5 border-t border-line px-4 py-2.5 text-xs text-ink-2 sm:px-6">
      <Archive className="hidden size-4 text-ink-3 sm:block" aria-hidden />
      <p className="min-w-0 flex-1 basis-64">
        {retentionDays === 0
          ? t("history.vault.keptNever")
          : t("history.vault.kept", { count: retentionDays })}
      </p>
      {vault.stored_sessions > 0 && (
        <button
          type="button"
          onClick={() => setOpen(true)}
          className="rounded font-medium text-accent hover:underline pointer-coarse:py-2"
        >
          {t("history.vault.content", {
            count: vault.stored_sessions,
            shown: formatCount(vault.stored_sessions, i18n.language),
            size: formatBytes(vault.stored_bytes, i18n.language),
          })}
        </button>
      )}
      <span className="flex items-center gap-2">
        <span id={label}>{t("history.vault.switch")}</span>
        <Switch.Root
          checked={vault.enabled}
          onCheckedChange={(enabled) => void turn(enabled)}
          aria-labelledby={label}
          className="relative h-5 w-9 shrink-0 rounded-full bg-line-strong transition-colors data-[checked]:bg-accent"
        >
          <Switch.Thumb className="absolute top-0.5 left-0.5 size-4 rounded-full bg-white shadow-card transition-transform data-[checked]:translate-x-4" />
        </Switch.Root>
      </span>
      <Modal
        open={open}
        onClose={() => setOpen(false)}
        title={t("history.vault.title")}
        description={t("history.vault.hint")}
      >
        <Archived onRestored={reload} />
      </Modal>
    </div>
  );
}

function Archived({ onRestored }: { onRestored: () => void }) {
  const { t } = useTranslation();
  const { paged, more } = usePaged<Session>(
    "vault",
    async (offset, limit) => {
      const { sessions, total } = await getVault({ offset, limit });
      return { items: sessions, total };
    },
    ARCHIVED_AT_ONCE,
  );
  async function bringBack(id: string): Promise<void> {
    try {
      await restore(id);
      onRestored();
      go({ view: "page", page: "history", rest: viewAddress({ view: "session", id }) });
    } catch (error) {
      toasts.add({ title: (error as Error).message, type: "error" });
    }
  }
  if (paged.state === "failed") return <p className="text-sm text-bad">{paged.message}</p>;
  if (paged.state === "ready" && paged.total === 0)
    return <p className="text-sm text-ink-2">{t("history.vault.nothingGone")}</p>;
  const left = paged.total - paged.items.length;
  return (
    <>
      <ul className="flex flex-col divide-y divide-line">
        {paged.items.map((session) => (
          <li key={session.id} className="flex items-center gap-3 py-2">
            <span className="min-w-0 flex-1">
              <span className="block truncate text-sm font-medium">
                {session.title || t("history.untitled")}
              </span>
              <span className="block truncate font-mono text-2xs text-ink-3">{session.project_path}</span>
            </span>
            <Button size="sm" onClick={() => void bringBack(session.id)}>
              <RotateCcw className="size-3.5" aria-hidden />
              {t("history.vault.restore")}
            </Button>
          </li>
        ))}
      </ul>
      {left > 0 && (
        <Button size="sm" className="mt-2" disabled={paged.state === "loading"} onClick={more}>
          {t("history.vault.more", { count: Math.min(left, ARCHIVED_AT_ONCE) })}
        </Button>
      )}
    </>
  );
}
