import { ArrowLeft, Download, FolderLock, GitFork, Send, Terminal, TriangleAlert } from "lucide-react";
import { type ReactNode, useId, useState } from "react";
import { useTranslation } from "react-i18next";
import { PromptField } from "../../ui/PromptField";
import type { Session, SessionDriver } from "../../gen/history";
import { cn } from "../../lib/cn";
import { formatBytes, formatCount } from "../../lib/format";
import { Empty, Fetched } from "../../ui/Page";
import { onceConnected, startSession } from "../../store/controller";
import { useApp } from "../../store/hooks";
import { Button } from "../../ui/Button";
import { CopyButton } from "../../ui/CopyButton";
import { Dropdown, DropdownItem } from "../../ui/Dropdown";
import { iconButtonClass } from "../../ui/IconButton";
import { Modal } from "../../ui/Modal";
import { tellFailure, toasts } from "../../ui/toasts";
import { viewHref } from "./address";
import { download } from "../../wire/files";
import { exportAddress, takeOverConversation } from "../../wire/history";
import { LiveBadge, useIsLive, useIsOurs } from "./SessionRow";
import { Transcript } from "./Transcript";
import { type Reading, useTranscript } from "./useTranscript";

/** One conversation, to be read, taken away and gone on with. */
export function ReadView({ id, at, goOn = false }: { id: string; at?: string; goOn?: boolean }) {
  const { t } = useTranslation();
  const { state, older, newer, again, retry } = useTranscript(id, at);
  if (state.state !== "ready") {
    return (
      <div className="mx-auto w-full max-w-[52rem] px-4 py-5 sm:px-10">
        <BackLink />
        <div className="mt-5">
          <Fetched loaded={state} onRetry={retry}>
            {() => null}
          </Fetched>
        </div>
      </div>
    );
  }
  const { reading } = state;
  return (
    <div className="flex min-h-0 flex-1 flex-col">
      <Title reading={reading} />
      {reading.entries.length === 0 ? (
        <div className="min-h-0 flex-1 px-4 py-8">
          <Empty title={t("history.read.empty")} />
        </div>
      ) : (
        <Transcript reading={reading} at={at} onOlder={older} onNewer={newer} />
      )}
      <Continue session={reading.session} goOn={goOn} onTaken={again} />
    </div>
  );
}

function BackLink() {
  const { t } = useTranslation();
  return (
    <a
      href={viewHref({ view: "list", filters: {} })}
      onClick={(event) => {
        // Back to the very list it was opened from, where there is one.
        if (history.length <= 1) return;
        event.preventDefault();
        history.back();
      }}
      aria-label={t("history.read.back")}
      className={`${iconButtonClass} -ml-1.5`}
    >
      <ArrowLeft className="size-4" aria-hidden />
    </a>
  );
}

function Title({ reading }: { reading: Reading }) {
  const { t, i18n } = useTranslation();
  const { session } = reading;
  const live = useIsLive(session);
  const [terminal, setTerminal] = useState(false);
  const date = new Intl.DateTimeFormat(i18n.language, { dateStyle: "medium", timeStyle: "short" });
  const language = i18n.language;
  return (
    <header className="flex shrink-0 items-start gap-2 border-b border-line px-4 py-2.5 sm:px-6">
      <BackLink />
      <div className="min-w-0 flex-1">
        <h1 className="flex items-center gap-2 text-base font-semibold tracking-tight">
          <span className="truncate">{session.title || t("history.untitled")}</span>
          {live && <LiveBadge />}
        </h1>
        <ul className="mt-0.5 flex flex-wrap gap-x-3 text-xs text-ink-3 [&>li]:min-w-0">
          <li className="truncate font-mono" title={session.project_path}>
            {session.project_path}
          </li>
          <li>{date.format(Date.parse(session.timestamp))}</li>
          <li className="hidden sm:block">
            {t("history.messages", {
              count: session.message_count,
              shown: formatCount(session.message_count, language),
            })}
          </li>
          <li className="hidden sm:block">{formatBytes(session.size_bytes, language)}</li>
          {session.models.length > 0 && (
            <li className="hidden font-mono text-2xs md:block">{session.models.join(", ")}</li>
          )}
          {(session.damaged_lines ?? 0) > 0 && (
            <li className="text-wait">{t("history.read.damaged", { count: session.damaged_lines ?? 0 })}</li>
          )}
        </ul>
      </div>
      <Button
        size="sm"
        onClick={() => setTerminal(true)}
        aria-label={t("session.terminal")}
        className="pointer-coarse:size-10 pointer-coarse:p-0"
      >
        <Terminal className="size-3.5" aria-hidden />
        <span className="hidden lg:inline">{t("session.terminal")}</span>
      </Button>
      <Dropdown
        label={t("history.export.label")}
        triggerClassName="inline-flex h-7 shrink-0 items-center gap-1.5 rounded-lg border border-line-strong bg-raised px-2.5 text-xs font-medium shadow-card hover:bg-hover pointer-coarse:size-10 pointer-coarse:justify-center pointer-coarse:p-0"
        trigger={
          <>
            <Download className="size-3.5" aria-hidden />
            <span className="hidden lg:inline">{t("history.export.label")}</span>
          </>
        }
      >
        {(["markdown", "html", "json"] as const).map((format) => (
          <DropdownItem
            key={format}
            icon={<Download />}
            onSelect={() => void download(exportAddress(session.id, format)).catch(tellFailure)}
          >
            {t(`history.export.${format}`)}
          </DropdownItem>
        ))}
      </Dropdown>
      <Modal
        open={terminal}
        onClose={() => setTerminal(false)}
        title={t("session.terminal")}
        description={t("session.terminalHint")}
      >
        <div className="flex items-start gap-2 rounded-lg border border-line bg-sunken py-2 pr-1.5 pl-3">
          <code className="min-w-0 flex-1 py-1 font-mono text-xs break-all">{reading.resumeCommand}</code>
          <CopyButton text={reading.resumeCommand} />
        </div>
      </Modal>
    </header>
  );
}

/** Goes on with the conversation here, in the folder that it belongs to. */
function Continue({ session, goOn, onTaken }: { session: Session; goOn: boolean; onTaken: () => void }) {
  const { t } = useTranslation();
  const isOurs = useIsOurs(session.id, true);
  const live = useIsLive(session);
  if (isOurs) {
    return (
      <Foot>
        <div className="flex flex-wrap items-center gap-3">
          <p className="min-w-0 flex-1 basis-60 text-sm text-ink-2">{t("history.continue.here")}</p>
          <a
            href={`#/s/${session.id}`}
            className="inline-flex h-8.5 items-center rounded-lg bg-accent px-3 text-sm font-medium text-accent-ink shadow-card hover:bg-accent-strong pointer-coarse:h-11"
          >
            {t("history.continue.open")}
          </a>
        </div>
      </Foot>
    );
  }
  return (
    <Foot>
      {live && session.driver && <Driven session={session} driver={session.driver} onTaken={onTaken} />}
      {live && !session.driver && (
        <p role="status" className="mb-2 rounded-lg bg-wait-soft px-3 py-2 text-xs text-wait">
          {t("history.continue.elsewhere")}
        </p>
      )}
      <Composer session={session} goOn={goOn} />
    </Foot>
  );
}

/** Two that write one conversation would split it unnoticed: the user decides who goes on. */
function Driven({
  session,
  driver,
  onTaken,
}: {
  session: Session;
  driver: SessionDriver;
  onTaken: () => void;
}) {
  const { t } = useTranslation();
  const [busy, setBusy] = useState(false);
  async function takeOver(): Promise<void> {
    setBusy(true);
    try {
      await takeOverConversation(session.id);
      onTaken();
    } catch (error) {
      toasts.add({ title: (error as Error).message, type: "error" });
    } finally {
      setBusy(false);
    }
  }
  return (
    <div
      role="status"
      className="mb-2 flex flex-wrap items-center gap-x-3 gap-y-2 rounded-xl bg-wait-soft px-3 py-2.5 text-sm"
    >
      <TriangleAlert className="size-4 shrink-0 text-wait" aria-hidden />
      <p className="min-w-0 flex-1 basis-64">
        {t("history.continue.driven", { pid: driver.pid })}
        <code className="mt-0.5 block truncate font-mono text-xs text-ink-2" title={driver.command}>
          {driver.command}
        </code>
      </p>
      <Button size="sm" variant="danger" disabled={busy} onClick={() => void takeOver()}>
        {t("driver.takeOver")}
      </Button>
    </div>
  );
}

function Foot({ children }: { children: ReactNode }) {
  return (
    <footer className="shrink-0 border-t border-line">
      <div className="mx-auto w-full max-w-[52rem] px-3 py-3 sm:px-10">{children}</div>
    </footer>
  );
}

function Composer({ session, goOn }: { session: Session; goOn: boolean }) {
  const { t } = useTranslation();
  const [text, setText] = useState("");
  const [refused, setRefused] = useState<"missing" | "offline">();
  const starting = useApp((state) => state.starting !== undefined);
  const failure = useApp((state) => state.startError);
  const problem = useId();

  function send(fork = false): void {
    const prompt = text.trim();
    if (prompt === "") setRefused("missing");
    else if (!starting)
      onceConnected(() =>
        setRefused(
          startSession({ prompt, resume: session.id, fork }, `history.${session.id}`) ? undefined : "offline",
        ),
      );
  }

  const complaint =
    (refused === "missing" && t("history.continue.missing")) ||
    (refused === "offline" && t("composer.problem.offline")) ||
    failure;
  return (
    <div
      className={cn(
        "rounded-xl border bg-raised px-3 pt-2.5 pb-2 shadow-card",
        complaint ? "border-bad" : "border-line-strong focus-within:border-accent",
      )}
    >
      <PromptField
        // Whoever chose to go on wants to write.
        // oxlint-disable-next-line jsx-a11y/no-autofocus
        autoFocus={goOn}
        aria-label={t("history.continue.label")}
        aria-describedby={complaint ? problem : undefined}
        placeholder={t("history.continue.label")}
        value={text}
        onChange={(value) => {
          setText(value);
          setRefused(undefined);
        }}
        onSend={() => send()}
        invalid={refused === "missing"}
      />
      {complaint && (
        <p id={problem} role="alert" className="text-xs text-bad">
          {complaint}
        </p>
      )}
      <div className="mt-1.5 flex items-center gap-3">
        <span
          className="flex min-w-0 flex-1 items-center gap-1.5 text-xs text-ink-3"
          title={session.project_path}
        >
          <FolderLock className="size-3.5 shrink-0" aria-hidden />
          <span className="sr-only">{t("session.folder")}</span>
          <span className="truncate font-mono">{session.project_path}</span>
        </span>
        <Button
          size="sm"
          title={t("history.continue.forkHint")}
          onClick={() => send(true)}
          disabled={starting}
        >
          <GitFork className="size-3.5" aria-hidden />
          {t("session.fork")}
        </Button>
        <Button variant="primary" size="sm" onClick={() => send()} disabled={starting}>
          <Send className="size-3.5" aria-hidden />
          {t("history.continue.send")}
        </Button>
      </div>
    </div>
  );
}
