/** Skills, MCP servers, plugins and hooks: what Claude Code has been given, read from its files. */
import { useTranslation } from "react-i18next";
import type { Described, Scope } from "../../gen/inventory";
import { CopyButton } from "../../ui/CopyButton";
import { LiveServers } from "../panel/LiveServers";
import { Badge, Empty, Group, Rows } from "../../ui/Page";
import { InventoryPage } from "./useInventory";

/** To be typed into a terminal, so the same in every language. */
const ADD_SERVER = "claude mcp add NAME -- COMMAND";

function ScopeBadge({ scope }: { scope: Scope }) {
  const { t } = useTranslation();
  return <Badge>{t(`inventory.scope.${scope}`)}</Badge>;
}

function DescribedRows({ entries, sign = "" }: { entries: readonly Described[]; sign?: string }) {
  return (
    <Rows>
      {entries.map((entry) => (
        <li key={entry.path} className="px-4 py-3">
          <div className="flex items-center gap-2">
            <span className="font-mono text-sm font-medium break-all">
              {sign}
              {entry.name}
            </span>
            <ScopeBadge scope={entry.scope} />
          </div>
          {entry.description && <p className="mt-0.5 text-sm text-ink-2">{entry.description}</p>}
          <Path path={entry.path} />
        </li>
      ))}
    </Rows>
  );
}

function Path({ path }: { path: string }) {
  return (
    <p className="mt-0.5 flex items-center gap-1 text-xs text-ink-3">
      <span className="min-w-0 truncate font-mono" title={path}>
        {path}
      </span>
      <CopyButton text={path} className="size-6" />
    </p>
  );
}

export function SkillsPage() {
  const { t } = useTranslation();
  return (
    <InventoryPage page="skills">
      {({ skills, commands, agents }) => (
        <>
          <Group title={t("inventory.skills")} count={skills.length}>
            {skills.length > 0 ? (
              <DescribedRows entries={skills} />
            ) : (
              <Empty title={t("inventory.noSkills")}>{t("inventory.noSkillsHint")}</Empty>
            )}
          </Group>
          {commands.length > 0 && (
            <Group title={t("inventory.commands")} count={commands.length}>
              <DescribedRows entries={commands} sign="/" />
            </Group>
          )}
          {agents.length > 0 && (
            <Group title={t("inventory.agents")} count={agents.length}>
              <DescribedRows entries={agents} />
            </Group>
          )}
        </>
      )}
    </InventoryPage>
  );
}

export function McpPage() {
  const { t } = useTranslation();
  return (
    <InventoryPage page="mcp">
      {({ mcpServers }) => (
        <>
          <LiveServers />
          <Group title={t("inventory.configured")} count={mcpServers.length}>
            {mcpServers.length === 0 && (
              <Empty title={t("inventory.noServers")}>
                <code className="font-mono text-xs">{ADD_SERVER}</code>
              </Empty>
            )}
            {mcpServers.length > 0 && (
              <Rows>
                {mcpServers.map((server) => (
                  <li key={`${server.scope}:${server.name}`} className="px-4 py-3">
                    <div className="flex items-center gap-2">
                      <span className="text-sm font-medium break-all">{server.name}</span>
                      <Badge>{server.transport}</Badge>
                      <ScopeBadge scope={server.scope} />
                    </div>
                    <p className="mt-0.5 font-mono text-xs break-all text-ink-2">{server.target}</p>
                    {[...server.environment, ...server.headers].length > 0 && (
                      <p className="mt-0.5 text-xs text-ink-3">
                        {t("inventory.secrets", {
                          names: [...server.environment, ...server.headers].join(", "),
                        })}
                      </p>
                    )}
                  </li>
                ))}
              </Rows>
            )}
          </Group>
        </>
      )}
    </InventoryPage>
  );
}

export function PluginsPage() {
  const { t } = useTranslation();
  return (
    <InventoryPage page="plugins">
      {({ plugins }) =>
        plugins.length === 0 ? (
          <Empty title={t("inventory.noPlugins")}>{t("inventory.noPluginsHint")}</Empty>
        ) : (
          <Rows>
            {plugins.map((plugin) => (
              <li key={plugin.name} className="px-4 py-3">
                <div className="flex items-center gap-2">
                  <span className="text-sm font-medium break-all">{plugin.name}</span>
                  {plugin.version && <span className="text-xs text-ink-3">{plugin.version}</span>}
                  <Badge tone={plugin.enabled ? "good" : "plain"}>
                    {plugin.enabled ? t("inventory.enabled") : t("inventory.disabled")}
                  </Badge>
                </div>
                {plugin.description && <p className="mt-0.5 text-sm text-ink-2">{plugin.description}</p>}
                <Path path={plugin.path} />
              </li>
            ))}
          </Rows>
        )
      }
    </InventoryPage>
  );
}

export function HooksPage() {
  const { t } = useTranslation();
  return (
    <InventoryPage page="hooks">
      {({ hooks }) => {
        if (hooks.length === 0)
          return <Empty title={t("inventory.noHooks")}>{t("inventory.noHooksHint")}</Empty>;
        const events = [...new Set(hooks.map((hook) => hook.event))];
        return events.map((event) => (
          <Group key={event} title={event}>
            <Rows>
              {hooks
                .filter((hook) => hook.event === event)
                .map((hook, index) => (
                  // oxlint-disable-next-line react/no-array-index-key -- hooks have no name
                  <li key={index} className="px-4 py-3">
                    <div className="flex flex-wrap items-center gap-2">
                      <Badge>{t(`inventory.hookKind.${hook.kind}`, { defaultValue: hook.kind })}</Badge>
                      <ScopeBadge scope={hook.scope} />
                      <span className="text-xs text-ink-3">
                        {hook.matcher
                          ? t("inventory.matcher", { matcher: hook.matcher })
                          : t("inventory.everything")}
                        {hook.timeout !== undefined &&
                          ` · ${t("inventory.timeout", { seconds: hook.timeout })}`}
                      </span>
                    </div>
                    <p className="mt-1 font-mono text-xs break-all">{hook.command}</p>
                    <Path path={hook.path} />
                  </li>
                ))}
            </Rows>
          </Group>
        ));
      }}
    </InventoryPage>
  );
}
