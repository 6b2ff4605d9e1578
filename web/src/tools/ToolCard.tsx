import {
  Bot,
  ChevronRight,
  CircleAlert,
  CircleCheck,
  CircleDot,
  CircleSlash,
  ClipboardList,
  FilePen,
  FileText,
  Globe,
  ListTodo,
  LoaderCircle,
  MessageCircleQuestionMark,
  PencilLine,
  Plug,
  Search,
  SquareTerminal,
  Wrench,
} from "lucide-react";
import { memo, type ReactNode, useEffect, useId, useState } from "react";
import { useTranslation } from "react-i18next";
import { decisionBorder } from "../ui/decisionBorder";
import { useExpansion } from "../ui/expansion";
import { RawButton } from "./RawButton";
import type { Behavior } from "../gen/events";
import { cn } from "../lib/cn";
import { formatDuration } from "../lib/format";
import { HighlightedCode } from "../markdown/HighlightedCode";
import type { ToolItem } from "../session/items";
import { familyOf, summarize, type ToolFamily, toolName } from "../session/describe";
import { exactParts } from "../session/toolCalls";
import type { Json } from "../wire/json";
import { Remark, ToolBody } from "./views";

const icons: Record<ToolFamily, typeof Bot> = {
  bash: SquareTerminal,
  read: FileText,
  edit: FilePen,
  search: Search,
  web: Globe,
  todo: ListTodo,
  question: MessageCircleQuestionMark,
  plan: ClipboardList,
  agent: Bot,
  mcp: Plug,
  other: Wrench,
};

/** Families whose content says more than their title. */
const OPEN_AT_FIRST = new Set<ToolFamily>(["bash", "edit", "todo", "question", "plan"]);

export type ToolState = ToolItem["phase"] | "waiting" | "denied";

const marks: Record<ToolState, { icon: typeof Bot; className: string }> = {
  writing: { icon: LoaderCircle, className: "text-ink-3 motion-safe:animate-spin" },
  waiting: { icon: CircleDot, className: "text-wait" },
  running: { icon: LoaderCircle, className: "text-accent motion-safe:animate-spin" },
  success: { icon: CircleCheck, className: "text-good" },
  error: { icon: CircleAlert, className: "text-bad" },
  denied: { icon: CircleSlash, className: "text-ink-3" },
  stopped: { icon: CircleSlash, className: "text-ink-3" },
};

/** How it went shows at the edge of the card, before anything is read. */
const edges: Record<ToolState, string> = {
  writing: "border-line",
  waiting: "border-line",
  running: "border-line border-l-accent",
  success: "border-line border-l-good",
  error: "border-line border-l-bad",
  denied: "border-line",
  stopped: "border-line",
};

interface ToolCardProps {
  sessionId: string;
  cwd: string | undefined;
  tool: ToolItem;
  waiting: boolean;
  decided: Behavior | undefined;
  /** What stands below the title while a decision waits, in place of the tool's own view. */
  children?: ReactNode;
  /** The subagent's conversation. */
  nested?: ReactNode;
}

export const ToolCard = memo(function ToolCard({
  sessionId,
  cwd,
  tool,
  waiting,
  decided,
  children,
  nested,
}: ToolCardProps) {
  const { t } = useTranslation();
  const family = familyOf(tool.name);
  const name = toolName(t, tool.name);
  const [open, toggle] = useExpansion(tool.key, OPEN_AT_FIRST.has(family));
  const content = useId();
  const Icon = icons[family];
  const state: ToolState = waiting
    ? "waiting"
    : decided === "deny"
      ? "denied"
      : decided === "withdrawn"
        ? "stopped"
        : tool.phase;
  const shown = waiting || open;
  const summary = summarize(tool.name, tool.input, cwd);
  return (
    <article
      data-tool={tool.name}
      data-state={state}
      aria-label={t("tool.label", { name })}
      tabIndex={-1}
      className="group/row relative outline-none"
    >
      <div
        className={cn(
          "overflow-hidden rounded-xl border bg-raised shadow-card",
          waiting ? decisionBorder(tool.name) : edges[state],
          waiting &&
            "has-[[role=group]:focus-visible]:border-wait has-[[role=group]:focus-visible]:ring-3 has-[[role=group]:focus-visible]:ring-wait/25",
        )}
      >
        {/* While it waits, the question is the card's heading. */}
        <div className={cn("flex items-center", waiting && children !== undefined && "sr-only")}>
          <button
            type="button"
            aria-expanded={shown}
            aria-controls={content}
            disabled={waiting}
            onClick={toggle}
            className="flex h-9 min-w-0 flex-1 items-center gap-2 rounded-xl pr-2 pl-3 text-left -outline-offset-2 max-sm:group-focus-within/row:pr-10 max-sm:group-hover/row:pr-10 sm:pr-3"
          >
            <Icon className="size-4 shrink-0 text-ink-3" aria-hidden />
            <span className="shrink-0 text-sm font-medium" title={name === tool.name ? undefined : tool.name}>
              {name}
            </span>
            <span className="min-w-0 flex-1 truncate font-mono text-xs text-ink-3">{summary}</span>
            {tool.asked && (
              <span className="flex shrink-0 items-center gap-1 rounded bg-wait-soft px-1.5 text-2xs font-medium text-wait">
                <PencilLine className="size-3" aria-hidden />
                {t("tool.edited")}
              </span>
            )}
            {state === "running" && <Elapsed tool={tool} />}
            <ToolMark state={state} />
            {!waiting && (
              <ChevronRight
                aria-hidden
                className={cn("size-3.5 shrink-0 text-ink-3 transition-transform", shown && "rotate-90")}
              />
            )}
          </button>
        </div>
        <RawButton sessionId={sessionId} seqs={tool.seqs} className="top-1 right-1 pointer-coarse:top-0.5" />
        {shown && (
          <div id={content} className="border-t border-line first:border-t-0">
            {children ?? (
              <ToolBody tool={withoutBoilerplate(tool)} sessionId={sessionId} narrated={Boolean(nested)} />
            )}
            {tool.asked && <Asked tool={tool} asked={tool.asked} cwd={cwd} />}
            {!children && decided === "deny" && <Remark>{t("decision.denied")}</Remark>}
            {!children && decided === "withdrawn" && <Remark>{t("decision.withdrawn")}</Remark>}
            {nested}
          </div>
        )}
      </div>
    </article>
  );
});

/** What the agent had asked for before a person changed it: one click away. */
function Asked({ tool, asked, cwd }: { tool: ToolItem; asked: Json; cwd: string | undefined }) {
  const { t } = useTranslation();
  const [open, toggle] = useExpansion(`${tool.key}:asked`, false);
  const content = useId();
  return (
    <div className="border-t border-line px-3 py-1.5 text-xs text-ink-3">
      <button
        type="button"
        aria-expanded={open}
        aria-controls={content}
        onClick={toggle}
        className="flex items-center gap-1 font-medium text-ink-2 hover:text-ink pointer-coarse:py-2"
      >
        <ChevronRight className={cn("size-3 transition-transform", open && "rotate-90")} aria-hidden />
        {t("tool.showAsked")}
      </button>
      {open && (
        <div id={content} className="mt-1.5 rounded-md bg-sunken">
          <HighlightedCode
            code={exactParts(asked).command ?? JSON.stringify(asked, null, 2)}
            language={exactParts(asked).command === undefined ? "json" : "bash"}
            className="px-3 py-2 whitespace-pre-wrap"
          />
          <span className="sr-only">{summarize(tool.name, asked, cwd)}</span>
        </div>
      )}
    </div>
  );
}

/** What the agent tells the model about a refusal is no news to the user, who gave it. */
const REFUSED = /^The user doesn't want to (proceed|take this action)/;

function withoutBoilerplate(tool: ToolItem): ToolItem {
  return tool.output !== undefined && REFUSED.test(tool.output) ? { ...tool, output: undefined } : tool;
}

/** When each running tool was first seen at work here; the agent's own reports come seldom, or not at all. */
const firstSeen = new Map<string, number>();

/** How long the tool has been at work, once that is worth a word. */
function Elapsed({ tool }: { tool: ToolItem }) {
  const { i18n } = useTranslation();
  const [now, setNow] = useState(Date.now);
  const { toolUseId, elapsedSeconds = 0 } = tool;
  const seen = firstSeen.get(toolUseId) ?? now;
  useEffect(() => {
    if (!firstSeen.has(toolUseId)) firstSeen.set(toolUseId, Date.now());
    const timer = setInterval(() => setNow(Date.now()), 1_000);
    return () => clearInterval(timer);
  }, [toolUseId]);
  const elapsed = Math.max(now - seen, elapsedSeconds * 1000);
  if (elapsed < 2_000) return null;
  return (
    <span className="shrink-0 text-xs text-ink-3 tabular-nums">
      {formatDuration(Math.floor(elapsed / 1000) * 1000, i18n.language)}
    </span>
  );
}

function ToolMark({ state }: { state: ToolState }) {
  const { t } = useTranslation();
  const { icon: Icon, className } = marks[state];
  return (
    <span className="flex shrink-0 items-center gap-1 text-xs">
      <Icon aria-hidden className={cn("size-3.5", className)} />
      <span
        className={cn(
          // The question below says for what; success needs no words.
          state === "success" || state === "waiting"
            ? "sr-only"
            : className.replace("motion-safe:animate-spin", ""),
        )}
      >
        {t(`tool.state.${state}`)}
      </span>
    </span>
  );
}
