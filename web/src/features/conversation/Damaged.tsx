import { FileWarning } from "lucide-react";
import { useTranslation } from "react-i18next";
import type { SessionInfo } from "../../gen/events";
import { CopyButton } from "../../ui/CopyButton";
import { SessionMenu } from "../settings/SessionMenu";

/** A session whose stored rows can't be read: what is known of it, why, and what can be done. */
export function Damaged({ session }: { session: SessionInfo }) {
  const { t } = useTranslation();
  return (
    <div className="m-auto flex w-full max-w-lg flex-col items-center px-6 text-center">
      <FileWarning className="size-8 text-bad" aria-hidden />
      <h1 className="mt-3 text-base font-semibold">{t("session.damaged.title", { title: session.title })}</h1>
      <p className="mt-1 text-sm text-ink-2">{t("session.damaged.text")}</p>
      {session.error && (
        <div className="relative mt-4 w-full rounded-lg border border-line bg-sunken py-2.5 pr-10 pl-3 text-left">
          <p className="font-mono text-xs break-words whitespace-pre-wrap">{session.error}</p>
          <CopyButton text={session.error} className="absolute top-1.5 right-1.5" />
        </div>
      )}
      <div className="mt-3">
        <SessionMenu session={session} always />
      </div>
    </div>
  );
}
