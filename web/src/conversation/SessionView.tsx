import { useEffect } from "react";
import { useTranslation } from "react-i18next";
import { SessionTopBar, TopBar } from "../frame/TopBar";
import { isLoading } from "../session/log";
import { openSession } from "../store/controller";
import { useApp, useLog, useSession } from "../store/hooks";
import { Composer } from "./Composer";
import { Conversation } from "./Conversation";

export function SessionView({ id }: { id: string }) {
  const { t } = useTranslation();
  const session = useSession(id);
  const log = useLog(id);
  const listed = useApp((state) => state.listed);
  const known = session !== undefined;

  useEffect(() => {
    if (known) openSession(id);
  }, [id, known]);

  if (!session && !listed) return <Opening />;
  if (!session) {
    return (
      <>
        <TopBar />
        <Missing />
      </>
    );
  }
  return (
    <>
      <SessionTopBar session={session} />
      {!log || (isLoading(log) && log.transcript.items.length === 0) ? (
        <LoadingConversation label={t("conversation.loading")} />
      ) : (
        <Conversation key={id} session={session} log={log} />
      )}
      <Composer key={`composer:${id}`} session={session} />
    </>
  );
}

/** While it is not yet known which session there is to show. */
export function Opening() {
  const { t } = useTranslation();
  return (
    <>
      <TopBar />
      <LoadingConversation label={t("common.loading")} />
    </>
  );
}

function LoadingConversation({ label }: { label: string }) {
  return (
    <div
      role="status"
      aria-label={label}
      className="mx-auto flex w-full max-w-[52rem] flex-1 flex-col gap-4 px-10 pt-8"
    >
      {["w-2/3", "w-full", "w-5/6", "w-1/2"].map((width) => (
        <span key={width} className={`h-4 animate-breathe rounded bg-active ${width}`} />
      ))}
    </div>
  );
}

function Missing() {
  const { t } = useTranslation();
  return (
    <div className="m-auto max-w-sm px-6 text-center">
      <h1 className="text-base font-semibold">{t("session.missing.title")}</h1>
      <p className="mt-1 text-sm text-ink-2">{t("session.missing.text")}</p>
      <a href="#/new" className="mt-4 inline-block text-sm font-medium text-accent hover:underline">
        {t("nav.new")}
      </a>
    </div>
  );
}
