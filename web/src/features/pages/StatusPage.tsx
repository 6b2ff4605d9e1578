import { useEffect } from "react";
import { useTranslation } from "react-i18next";
import { formatCount } from "../../lib/format";
import { watchStatistics } from "../../store/controller";
import { useApp, useSessionList } from "../../store/hooks";
import { CopyButton } from "../../ui/CopyButton";
import type { DefaultBackend } from "../../gen/http";
import { Badge, Group, Page } from "../../ui/Page";
import { useInventory } from "./useInventory";

const INSTALL = "npm install -g @anthropic-ai/claude-code";

const logins = ["subscription", "apiKey"] as const;

/** Which agent is in use, whether it is signed in, and how busy the machine is. */
export function StatusPage() {
  const { t, i18n } = useTranslation();
  const system = useApp((state) => state.system);
  const statistics = useApp((state) => state.statistics);
  const sessions = useSessionList();
  const more = useApp((state) => state.listing.cursor !== undefined);
  const [inventory] = useInventory();
  const found = inventory.state === "ready" ? inventory.value : undefined;
  useEffect(watchStatistics, []);
  const demo = system?.backend.name === "demo";
  const running = sessions.filter((session) => session.status === "running").length;
  return (
    <Page page="status">
      <Group title={t("state.agent")}>
        <Facts>
          <Fact label={t("state.backend")}>
            {system && (
              <span className="flex flex-wrap items-center gap-2">
                {demo ? t("state.demo") : t("state.claude")}
                <Badge tone={demo ? "wait" : "good"}>
                  {demo ? t("state.notInstalled") : t("state.ready")}
                </Badge>
              </span>
            )}
          </Fact>
          <Fact label={t("state.version")}>{system?.backend.version ?? "–"}</Fact>
          <Fact label={t("state.transport")}>{system?.backend.transport ?? "–"}</Fact>
          <Fact label={t("state.login")}>
            {found ? t(`state.logins.${logins.find((each) => each === found.login) ?? "none"}`) : "–"}
          </Fact>
          <Fact label={t("state.home")}>
            <span className="font-mono text-xs break-all">{found?.claudeHome ?? "–"}</span>
          </Fact>
          {system && (
            <Fact label={t("state.reason")}>
              <Reason backend={system.backend} />
            </Fact>
          )}
        </Facts>
        {found && !found.login && !demo && <Remedy text={t("state.loginHint")} command="claude /login" />}
        {demo && <Remedy text={t("state.installHint")} command={INSTALL} />}
      </Group>
      <Group title={t("state.machine")}>
        <div className="grid gap-3 sm:grid-cols-3">
          <Meter label={t("state.cpu")} value={statistics?.cpuUsage} note={system?.cpuModel} />
          <Meter
            label={t("state.memory")}
            value={statistics?.ramUsage}
            note={
              system?.totalMemoryGB === undefined
                ? undefined
                : t("state.gigabytes", { count: system.totalMemoryGB })
            }
          />
          <Meter
            label={t("state.storage")}
            value={statistics?.storageUsage}
            note={
              system?.totalStorage === undefined
                ? undefined
                : t("state.gigabytes", { count: system.totalStorage })
            }
          />
        </div>
      </Group>
      <Group title={t("state.tiller")}>
        <Facts>
          <Fact label={t("state.version")}>{system?.version ?? "–"}</Fact>
          <Fact label={t("state.sessions")}>
            {t("state.sessionCounts", {
              all: formatCount(sessions.length, i18n.language) + (more ? "+" : ""),
              running: formatCount(running, i18n.language),
            })}
          </Fact>
          <Fact label={t("state.roots")}>
            <span className="font-mono text-xs break-all">{system?.roots?.join(", ") ?? "–"}</span>
          </Fact>
        </Facts>
      </Group>
    </Page>
  );
}

const reasons = [
  "found",
  "stdioChosen",
  "connects",
  "cannotConnect",
  "versionUnknown",
  "notInstalled",
  "demoChosen",
] as const;

/** Why this agent was chosen, in the page's language where it knows the reason. */
function Reason({ backend }: { backend: DefaultBackend }) {
  const { t } = useTranslation();
  const why = reasons.find((each) => each === backend.why);
  if (!why) return backend.reason;
  return (
    <>
      {t(`state.reasons.${why}`)}
      {backend.path && (
        <span className="mt-0.5 block font-mono text-xs break-all text-ink-2">{backend.path}</span>
      )}
    </>
  );
}

function Facts({ children }: { children: React.ReactNode }) {
  return (
    <dl className="divide-y divide-line rounded-xl border border-line bg-raised shadow-card">{children}</dl>
  );
}

function Fact({ label, children }: { label: string; children: React.ReactNode }) {
  return (
    <div className="flex flex-col gap-x-4 gap-y-0.5 px-4 py-2.5 text-sm sm:flex-row">
      <dt className="w-40 shrink-0 text-ink-3">{label}</dt>
      <dd className="min-w-0 flex-1 [overflow-wrap:anywhere]">{children}</dd>
    </div>
  );
}

function Remedy({ text, command }: { text: string; command: string }) {
  return (
    <div className="mt-3 flex flex-wrap items-center gap-x-3 gap-y-2 rounded-lg bg-wait-soft px-4 py-2.5 text-sm">
      <p className="min-w-0 flex-1 basis-60">{text}</p>
      <span className="flex items-center gap-1 rounded-md border border-line bg-raised pl-2.5">
        <code className="font-mono text-xs">{command}</code>
        <CopyButton text={command} />
      </span>
    </div>
  );
}

/** A share of something, as a bar and a number. */
function Meter({ label, value, note }: { label: string; value: number | undefined; note?: string }) {
  const { i18n } = useTranslation();
  const percent = value === undefined ? undefined : Math.round(Math.min(1, Math.max(0, value)) * 100);
  const format = new Intl.NumberFormat(i18n.language, { style: "percent" });
  return (
    <div className="rounded-xl border border-line bg-raised px-4 py-3 shadow-card">
      <div className="flex items-baseline justify-between gap-2 text-sm">
        <span className="text-ink-2">{label}</span>
        <span className="font-medium tabular-nums">
          {percent === undefined ? "–" : format.format(percent / 100)}
        </span>
      </div>
      <div
        role="meter"
        aria-label={label}
        aria-valuemin={0}
        aria-valuemax={100}
        aria-valuenow={percent ?? 0}
        className="mt-2 h-1.5 overflow-hidden rounded-full bg-active"
      >
        <div
          className="h-full rounded-full bg-accent transition-[width] duration-500"
          style={{ width: `${percent ?? 0}%` }}
        />
      </div>
      <p className="mt-1.5 truncate text-xs text-ink-3" title={note}>
        {note ?? "\u00a0"}
      </p>
    </div>
  );
}
