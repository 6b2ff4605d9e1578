import { useTranslation } from "react-i18next";
import { SessionMark } from "../../ui/StatusMark";
import type { SessionInfo } from "../../gen/events";
import { formatBytes } from "../../lib/format";
import { TaskList } from "../panel/TaskList";
import { emptySummary, tasksOf } from "../../session/summary";
import { stopSession } from "../../store/controller";
import { useLog, useSessionList } from "../../store/hooks";
import { Button } from "../../ui/Button";
import { Badge, Empty, Group, Page, Rows } from "../../ui/Page";

/** Who is at work: every agent with what it costs, and its subagents and background tasks. */
export function AgentsPage() {
  const { t } = useTranslation();
  const sessions = useSessionList();
  const alive = sessions.filter(
    (session) => session.status === "running" || session.agent.state !== "absent",
  );
  const working = alive.filter((session) => session.status === "running");
  const resting = alive.filter((session) => session.status !== "running");
  return (
    <Page page="agents">
      {alive.length === 0 && <Empty title={t("agents.none")}>{t("agents.noneHint")}</Empty>}
      {working.length > 0 && (
        <Group title={t("agents.working")} count={working.length}>
          <Rows>
            {working.map((session) => (
              <AgentRow key={session.id} session={session} />
            ))}
          </Rows>
        </Group>
      )}
      {resting.length > 0 && (
        <Group title={t("agents.resting")} count={resting.length}>
          <Rows>
            {resting.map((session) => (
              <AgentRow key={session.id} session={session} />
            ))}
          </Rows>
        </Group>
      )}
    </Page>
  );
}

function AgentRow({ session }: { session: SessionInfo }) {
  const { t, i18n } = useTranslation();
  const log = useLog(session.id);
  const running = session.status === "running";
  const { agent } = session;
  const tasks = tasksOf(session.summary ?? emptySummary, log?.transcript.tasks);
  return (
    <li className="px-4 py-3">
      <div className="flex items-start gap-3">
        <SessionMark session={session} className="mt-[3px]" />
        <div className="min-w-0 flex-1">
          <a href={`#/s/${session.id}`} className="block truncate text-sm font-medium hover:underline">
            {session.title}
          </a>
          <p className="truncate font-mono text-xs text-ink-3" title={session.cwd}>
            {session.cwd}
          </p>
          <p className="mt-1 flex flex-wrap items-center gap-x-3 text-xs text-ink-3 tabular-nums">
            <Badge tone={agent.state === "running" ? "good" : "plain"}>
              {t(`agents.state.${agent.state}`)}
            </Badge>
            {agent.notShielded !== undefined && (
              <span title={agent.notShielded}>
                <Badge tone="wait">{t("agents.notShielded")}</Badge>
              </span>
            )}
            {agent.sandbox && (
              <span title={agent.sandbox.hosts?.join(", ")}>
                <Badge tone="good">{t(`sandbox.level.${agent.sandbox.hosts ? "on" : "files"}.short`)}</Badge>
              </span>
            )}
            {agent.memoryBytes !== undefined && <span>{formatBytes(agent.memoryBytes, i18n.language)}</span>}
            {agent.cpu !== undefined && (
              <span>{t("agents.cpu", { percent: Math.round(agent.cpu * 100) })}</span>
            )}
          </p>
        </div>
        {running && (
          <Button size="sm" onClick={() => stopSession(session.id)}>
            {t("composer.stop")}
          </Button>
        )}
      </div>
      {tasks.length > 0 && (
        <div className="mt-2 border-t border-line pt-2">
          <TaskList tasks={tasks} />
        </div>
      )}
    </li>
  );
}
