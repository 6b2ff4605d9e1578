import { X } from "lucide-react";
import { memo, type ReactNode, useMemo } from "react";
import { useTranslation } from "react-i18next";
import type { SessionInfo } from "../../gen/events";
import { formatClock, formatCost, formatCount, formatDuration, formatMilliseconds } from "../../lib/format";
import { ServerStatus } from "./LiveServers";
import { useSeconds } from "../../lib/useNow";
import { filesOf, serversOf, type Summary, tasksOf, workingTime } from "../../session/summary";
import type { Transcript } from "../../session/transcript";
import { TodoRows } from "../../tools/TodoRows";
import { IconButton } from "../../ui/IconButton";
import { Budget } from "./Budget";
import { ContextPicture } from "./ContextPicture";
import { FileRow } from "./FileRow";
import { usePanel } from "../../store/panel";
import { TaskList } from "./TaskList";

export interface SidePanelProps {
  session: SessionInfo;
  /** The session's totals. */
  summary: Summary;
  /** The conversation, as far as it is loaded and shown. */
  transcript: Transcript | undefined;
  /** All of the session is loaded. */
  whole: boolean;
  /** The view has been cleared: the next prompt starts a new session. */
  anew: boolean;
}

/** The session's totals and details, beside its conversation. */
const SidePanel = memo(function SidePanel({ session, summary, transcript, whole, anew }: SidePanelProps) {
  const { t, i18n } = useTranslation();
  const close = usePanel((state) => state.close);
  const now = useSeconds(summary.turnBegan !== undefined);
  const items = transcript?.items;
  const files = useMemo(
    () => filesOf(summary, items ?? [], session.cwd, whole),
    [summary, items, session.cwd, whole],
  );
  const tasks = tasksOf(summary, transcript?.tasks);
  const servers = serversOf(summary);
  const { todos } = summary;
  const done = todos.filter((todo) => todo.status === "completed").length;
  // Nothing is known before the first turn has ended.
  const running = summary.turnBegan !== undefined;
  const known = (value: string) => (summary.turns === 0 ? "–" : value);
  const time = workingTime(summary, now);
  const { language } = i18n;
  return (
    <>
      <h2 className="sr-only">{t("panel.label")}</h2>
      <div className="flex h-10 shrink-0 items-center justify-between border-b border-line pr-1.5 pl-4 xl:hidden">
        <span aria-hidden className="text-sm font-semibold">
          {t("panel.label")}
        </span>
        <IconButton label={t("panel.hide")} onClick={close}>
          <X className="size-4" />
        </IconButton>
      </div>
      <div className="min-h-0 flex-1 overflow-y-auto px-4 pb-6">
        <Section title={t("panel.context")}>
          {anew ? (
            <p className="text-sm text-ink-2">{t("panel.contextUnknown")}</p>
          ) : (
            <ContextPicture session={session} tokens={transcript?.contextTokens ?? summary.contextTokens} />
          )}
        </Section>
        <Section title={t("panel.cost")}>
          <dl className="grid grid-cols-2 gap-x-4 gap-y-1 text-sm">
            <Fact label={t("panel.spent")} value={known(formatCost(summary.costUsd, language))} />
            <Fact
              label={t("panel.time")}
              value={running ? formatClock(time, language) : known(formatDuration(time, language))}
              exact={formatMilliseconds(time, language)}
            />
            <Fact label={t("panel.tokensIn")} value={known(formatCount(summary.tokensIn, language))} />
            <Fact label={t("panel.tokensOut")} value={known(formatCount(summary.tokensOut, language))} />
          </dl>
          <Budget session={session} spent={summary.costUsd} />
        </Section>
        <Section
          title={t("panel.todos")}
          note={todos.length > 0 ? t("panel.progress", { done, all: todos.length }) : undefined}
        >
          {todos.length > 0 ? (
            <>
              <div className="mb-2 h-1 overflow-hidden rounded-full bg-active" aria-hidden>
                <div
                  className="h-full rounded-full bg-good"
                  style={{ width: `${(done / todos.length) * 100}%` }}
                />
              </div>
              <TodoRows todos={todos} />
            </>
          ) : (
            <None>{t("panel.noTodos")}</None>
          )}
        </Section>
        <Section
          title={t("panel.files")}
          note={files.length > 0 ? formatCount(files.length, language) : undefined}
        >
          {files.length > 0 ? (
            <ul className="-mx-2 flex flex-col gap-px">
              {files.map((file) => (
                <FileRow key={file.path} file={file} session={session} whole={whole} />
              ))}
            </ul>
          ) : (
            <None>{t("panel.noFiles")}</None>
          )}
        </Section>
        {tasks.length > 0 && (
          <Section title={t("panel.tasks")} note={formatCount(tasks.length, language)}>
            <TaskList tasks={tasks} />
          </Section>
        )}
        {servers.length > 0 && (
          <Section title={t("panel.servers")}>
            <ul className="flex flex-col gap-1.5 text-sm">
              {servers.map((server) => (
                <li key={server.name} className="flex items-center justify-between gap-2">
                  <span className="truncate">{server.name}</span>
                  <ServerStatus status={server.status} />
                </li>
              ))}
            </ul>
          </Section>
        )}
      </div>
    </>
  );
});

export default SidePanel;

function Section({ title, note, children }: { title: string; note?: string; children: ReactNode }) {
  return (
    <section className="border-b border-line py-4 last:border-b-0">
      <h3 className="mb-2 flex items-baseline justify-between text-xs font-semibold text-ink-2">
        {title}
        {note && <span className="font-normal text-ink-3 tabular-nums">{note}</span>}
      </h3>
      {children}
    </section>
  );
}

const None = ({ children }: { children: ReactNode }) => <p className="text-sm text-ink-3">{children}</p>;

function Fact({ label, value, exact }: { label: string; value: string; exact?: string }) {
  return (
    <div className="flex flex-col">
      <dt className="text-xs text-ink-3">{label}</dt>
      <dd className="tabular-nums" title={exact}>
        {value}
      </dd>
    </div>
  );
}
