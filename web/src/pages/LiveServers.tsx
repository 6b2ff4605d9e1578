import { useTranslation } from "react-i18next";
import { useApp, useSessionList } from "../store/hooks";
import { asObjects, asString } from "../wire/json";
import { Badge, Group, Rows } from "./Page";

const tones: Record<string, "good" | "wait" | "bad" | "plain"> = {
  connected: "good",
  pending: "wait",
  "needs-auth": "wait",
  failed: "bad",
  disabled: "plain",
};
const known = ["connected", "pending", "needs-auth", "failed", "disabled"] as const;

export interface LiveServer {
  readonly name: string;
  readonly status: string;
}

export function serversOf(init: Record<string, unknown> | undefined): LiveServer[] {
  return asObjects(init?.mcp_servers).flatMap((server) => {
    const name = asString(server.name);
    return name ? [{ name, status: asString(server.status) ?? "" }] : [];
  });
}

/** What an agent said about its servers when its last turn began. */
export function LiveServers() {
  const { t } = useTranslation();
  const logs = useApp((state) => state.logs);
  const sessions = useSessionList();
  const live = sessions.flatMap((session) =>
    serversOf(logs.get(session.id)?.transcript.init).map((server) => ({ ...server, session })),
  );
  if (live.length === 0) return null;
  return (
    <Group title={t("inventory.live")} count={live.length}>
      <Rows>
        {live.map(({ name, status, session }) => (
          <li key={`${session.id}:${name}`} className="flex items-center gap-2 px-4 py-2.5 text-sm">
            <span className="font-medium">{name}</span>
            <ServerStatus status={status} />
            <a href={`#/s/${session.id}`} className="ml-auto truncate text-xs text-accent hover:underline">
              {session.title}
            </a>
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
