import { ExternalLink } from "lucide-react";
import { useTranslation } from "react-i18next";
import { permissionModes } from "../../session/modes";
import { grantableTools } from "../../session/tools";
import { Group, Page, Rows } from "../../ui/Page";

const tools = [...grantableTools, "AskUserQuestion", "ExitPlanMode", "Skill"] as const;
const agents = ["general", "explore", "plan", "custom"] as const;
const rules = ["tool", "command", "path", "domain", "mcp"] as const;
const links = [
  { name: "overview", address: "https://docs.claude.com/en/docs/claude-code/overview" },
  { name: "settings", address: "https://docs.claude.com/en/docs/claude-code/settings" },
  { name: "hooks", address: "https://docs.claude.com/en/docs/claude-code/hooks" },
  { name: "mcp", address: "https://docs.claude.com/en/docs/claude-code/mcp" },
  { name: "skills", address: "https://docs.claude.com/en/docs/claude-code/skills" },
] as const;
/** How rules are written: the same in every language. */
const ruleExamples = {
  tool: "Read",
  command: "Bash(npm run test *)",
  path: "Edit(src/**)",
  domain: "WebFetch(domain:example.com)",
  mcp: "mcp__github__create_issue",
} as const;

/** What the tools do, what the modes mean, how rules are written: what one needs to decide well. */
export function DocsPage() {
  const { t } = useTranslation();
  return (
    <Page page="docs">
      <Group title={t("docs.tools")}>
        <Rows>
          {tools.map((name) => (
            <Row key={name} name={name} text={t(`docs.tool.${name}`)} />
          ))}
        </Rows>
      </Group>
      <Group title={t("docs.modes")}>
        <Rows>
          {permissionModes.map((mode) => (
            <Row key={mode} name={t(`mode.${mode}.name`)} text={t(`docs.mode.${mode}`)} plain />
          ))}
        </Rows>
      </Group>
      <Group title={t("docs.agents")}>
        <Rows>
          {agents.map((name) => (
            <Row key={name} name={t(`docs.agent.${name}.name`)} text={t(`docs.agent.${name}.text`)} plain />
          ))}
        </Rows>
      </Group>
      <Group title={t("docs.rules")}>
        <p className="mb-2 text-sm text-ink-2">{t("docs.rulesHint")}</p>
        <Rows>
          {rules.map((name) => (
            <Row key={name} name={ruleExamples[name]} text={t(`docs.rule.${name}`)} />
          ))}
        </Rows>
      </Group>
      <Group title={t("docs.more")}>
        <ul className="flex flex-wrap gap-x-5 gap-y-2 text-sm">
          {links.map(({ name, address }) => (
            <li key={name}>
              <a
                href={address}
                target="_blank"
                rel="noopener noreferrer"
                className="inline-flex items-center gap-1.5 text-accent hover:underline"
              >
                {t(`docs.link.${name}`)}
                <ExternalLink className="size-3.5" aria-hidden />
              </a>
            </li>
          ))}
        </ul>
      </Group>
    </Page>
  );
}

function Row({ name, text, plain = false }: { name: string; text: string; plain?: boolean }) {
  return (
    <li className="flex flex-col gap-x-4 gap-y-0.5 px-4 py-2.5 text-sm sm:flex-row">
      <span className={`w-52 shrink-0 font-medium break-all ${plain ? "" : "font-mono text-xs leading-5"}`}>
        {name}
      </span>
      <span className="min-w-0 flex-1 text-ink-2">{text}</span>
    </li>
  );
}
