import { useTranslation } from "react-i18next";
import type { SessionInfo } from "../../gen/events";
import { useSessionList } from "../../store/hooks";
import { emptySummary, serversOf } from "../../session/summary";
import { Badge, Group, Rows } from "../../ui/Page";

const tones: Record<string, "good" | "wait" | "bad" | "plain"> = {
  connected: "good",
  pending: "wait",
  "needs-auth": "wait",
  failed: "bad",
  disabled: "plain",
};
const known = ["connected", "pending", "needs-auth", "failed", "disabled"] as const;

interface SaidOf {
  readonly name: string;
  /** The sessions that said so, by what they said. */
  readonly statuses: ReadonlyMap<string, readonly SessionInfo[]>;
}

/** One entry for each server, whatever the number of sessions that know it. Pure. */
export function byServer(sessions: readonly SessionInfo[]): SaidOf[] {
  const servers = new Map<string, Map<string, SessionInfo[]>>();
  for (const session of sessions)
    for (const { name, status } of serversOf(session.summary ?? emptySummary)) {
      const statuses = servers.get(name) ?? new Map<string, SessionInfo[]>();
      servers.set(name, statuses.set(status, [...(statuses.get(status) ?? []), session]));
    }
  return [...servers].map(([name, statuses]) => ({ name, statuses }));
}

/** What agents said about their servers when their last turn began. */
export function LiveServers() {
  const { t } = useTranslation();
  const live = byServer(useSessionList());
  if (live.length === 0) return null;
  return (
    <Group title={t("inventory.live")} count={live.length}>
      <Rows>
        {live.map(({ name, statuses }) => (
          <li key={name} className="flex flex-col gap-x-4 gap-y-1 px-4 py-2.5 text-sm sm:flex-row">
            <span className="w-40 shrink-0 truncate font-medium" title={name}>
              {name}
            </span>
            <ul className="flex min-w-0 flex-1 flex-col gap-1">
              {[...statuses].map(([status, said]) => (
                <li key={status} className="flex items-baseline gap-3">
                  <ServerStatus status={status} />
                  <span className="flex min-w-0 flex-wrap gap-x-3 gap-y-0.5">
                    {said.map((session) => (
                      <a
                        key={session.id}
                        href={`#/s/${session.id}`}
                        title={session.title}
                        className="max-w-48 truncate text-xs text-accent hover:underline"
                      >
                        {session.title}
                      </a>
                    ))}
                  </span>
                </li>
              ))}
            </ul>
          </li>
        ))}
      </Rows>
    </Group>
  );
}

export function ServerStatus({ status }: { status: string }) {
  const { t } = useTranslation();
  const name = known.find((each) => each === status);
  return <Badge tone={tones[status] ?? "plain"}>{name ? t(`inventory.status.${name}`) : status}</Badge>;
}
