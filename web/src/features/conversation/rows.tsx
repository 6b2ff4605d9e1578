/** One component for each kind of row. All are memoised on what they show: a streamed word draws one row again. */
import { Brain, ChevronRight, Clock, FileCode, Hourglass, Info, LoaderCircle } from "lucide-react";
import { memo, type ReactNode, useId, useMemo } from "react";
import { useTranslation } from "react-i18next";
import { decisionBorder } from "../../ui/decisionBorder";
import { DecisionPanel } from "../decisions/Decision";
import { cn } from "../../lib/cn";
import { excerpt } from "../../lib/excerpt";
import { baseName, formatMoment } from "../../lib/format";
import { Markdown } from "../../markdown/Markdown";
import type { InitItem, Item, NoticeItem, PromptItem, TextItem } from "../../session/items";
import type { Decision } from "../../session/log";
import type { Row } from "../../session/rows";
import { ToolCard } from "../../tools/ToolCard";
import { useExpansion } from "../../ui/expansion";
import { useEditing } from "./editing";
import { Queued } from "./Queued";
import { EditPrompt } from "./EditPrompt";
import { MessageMenu, MessageTime } from "./MessageMenu";
import { Rewound } from "./Rewound";
import { SentImage } from "./SentImage";
import { ToolGroup } from "./ToolGroup";
import { modeName } from "../../session/modes";
import { RawButton } from "../../tools/RawButton";
import { Facts, Line } from "./Line";
import { Failure, RetryNotice, TurnResult } from "./TurnEnd";
import { TurnClock } from "./TurnClock";

interface RowContext {
  sessionId: string;
  cwd: string | undefined;
}

export const RowView = memo(function RowView({ row, sessionId, cwd }: RowContext & { row: Row }) {
  switch (row.kind) {
    case "item":
      if (row.item.kind === "tool") {
        return (
          <ToolCard
            sessionId={sessionId}
            cwd={cwd}
            tool={row.item}
            waiting={row.decision !== undefined}
            decided={row.decided?.behavior}
            nested={
              row.children.length > 0 && <Nested items={row.children} sessionId={sessionId} cwd={cwd} />
            }
          >
            {row.decision && <DecisionPanel decision={row.decision} call={row.item.input} cwd={cwd} />}
          </ToolCard>
        );
      }
      return <ItemView item={row.item} sessionId={sessionId} />;
    case "group":
      return (
        <ToolGroup id={row.key} rows={row.rows} cwd={cwd}>
          {({ item, decided }) => (
            <ToolCard
              sessionId={sessionId}
              cwd={cwd}
              tool={item}
              waiting={false}
              decided={decided?.behavior}
            />
          )}
        </ToolGroup>
      );
    case "decision":
      return <LooseDecision decision={row.decision} cwd={cwd} />;
    case "queued":
    case "kept":
      return <Queued sessionId={sessionId} state={row.kind} queue={row.queue} prompt={row.prompt} />;
    case "rewound":
      return <Rewound sessionId={sessionId} prompts={row.prompts} newest={row.newest} />;
    case "sending":
      return <Sending prompt={row.prompt} />;
    case "working":
      return <Working sessionId={sessionId} />;
  }
}, sameRow);

/** Rows are projected anew each frame; what they show is not new for that. */
function sameRow(a: RowContext & { row: Row }, b: RowContext & { row: Row }): boolean {
  if (a.sessionId !== b.sessionId || a.cwd !== b.cwd || a.row.kind !== b.row.kind) return false;
  if (a.row.kind === "item" && b.row.kind === "item") {
    return (
      a.row.item === b.row.item &&
      a.row.decision === b.row.decision &&
      a.row.decided === b.row.decided &&
      a.row.children.length === b.row.children.length &&
      a.row.children.every((child, index) => b.row.kind === "item" && child === b.row.children[index])
    );
  }
  if (a.row.kind === "group" && b.row.kind === "group") {
    const { rows } = b.row;
    return (
      a.row.rows.length === rows.length && a.row.rows.every((row, index) => row.item === rows[index]?.item)
    );
  }
  if (a.row.kind === "decision" && b.row.kind === "decision") return a.row.decision === b.row.decision;
  if (a.row.kind === "rewound" && b.row.kind === "rewound")
    return a.row.prompts === b.row.prompts && a.row.newest === b.row.newest;
  if ("queue" in a.row && "queue" in b.row) return a.row.queue === b.row.queue && a.row.key === b.row.key;
  if ("prompt" in a.row && "prompt" in b.row) return a.row.prompt === b.row.prompt;
  return true;
}

const ItemView = memo(function ItemView({
  item,
  sessionId,
}: {
  item: Exclude<Item, { kind: "tool" }>;
  sessionId: string;
}) {
  switch (item.kind) {
    case "prompt":
      return <Prompt item={item} sessionId={sessionId} />;
    case "text":
      return <Answer item={item} sessionId={sessionId} />;
    case "thinking":
      return <Thinking item={item} sessionId={sessionId} />;
    case "init":
      return <Init item={item} sessionId={sessionId} />;
    case "result":
      return <TurnResult item={item} sessionId={sessionId} />;
    case "notice":
      return <Notice item={item} sessionId={sessionId} />;
  }
});

function Prompt({ item, sessionId }: { item: PromptItem; sessionId: string }) {
  const { t } = useTranslation();
  const file = item.context?.selectedFile;
  const editing = useEditing(item.key);
  if (editing) return <EditPrompt item={item} sessionId={sessionId} />;
  return (
    <div className="group/row relative pt-3 outline-none" tabIndex={-1}>
      <div className="ml-auto w-fit max-w-[min(40rem,88%)] rounded-2xl rounded-br-md bg-bubble px-4 py-2.5">
        <span className="sr-only">{t("conversation.you")}</span>
        {item.text !== "" && <PromptText id={item.key} text={item.text} />}
        {file && (
          <p className="mt-1 flex items-center gap-1.5 font-mono text-xs text-ink-2" title={file.path}>
            <FileCode className="size-3.5 shrink-0" aria-hidden />
            <span className="truncate">
              {baseName(file.path)}
              {file.startLine !== undefined && `:${file.startLine}–${file.endLine ?? file.startLine}`}
            </span>
          </p>
        )}
        {item.images && item.images.length > 0 && (
          <div className="mt-2 flex flex-wrap gap-2">
            {item.images.map((address) => (
              <img
                key={address}
                src={address}
                alt={t("images.image")}
                className="max-h-40 max-w-full rounded-lg border border-line"
              />
            ))}
          </div>
        )}
        {item.attachments && item.attachments.length > 0 && (
          <div className="mt-2 flex flex-wrap gap-2">
            {item.attachments.map((image) => (
              <SentImage
                key={image.id}
                path={`/api/sessions/${sessionId}/images/${image.id}`}
                name={image.name ?? t("images.image")}
              />
            ))}
          </div>
        )}
      </div>
      <MessageTime sessionId={sessionId} seqs={item.seqs} className="bottom-1 left-0" />
      <MessageMenu sessionId={sessionId} item={item} className="top-3 sm:top-11" />
      <RawButton sessionId={sessionId} seqs={item.seqs} className="top-3.5" />
    </div>
  );
}

const PROMPT_LINES = 12;
const PROMPT_CHARACTERS = 1_000;

/** What the user wrote; of very long text, the beginning. */
function PromptText({ id, text }: { id: string; text: string }) {
  const { t } = useTranslation();
  const [open, toggle] = useExpansion(`prompt:${id}`, false);
  const content = useId();
  const short = useMemo(() => excerpt(text, PROMPT_LINES, PROMPT_CHARACTERS), [text]);
  return (
    <>
      <p id={content} dir="auto" className="break-words whitespace-pre-wrap">
        {short === undefined || open ? text : `${short} …`}
      </p>
      {short !== undefined && (
        <button
          type="button"
          aria-expanded={open}
          aria-controls={content}
          onClick={toggle}
          className="-ml-1.5 mt-1 rounded-md px-1.5 py-0.5 text-xs font-medium text-accent hover:bg-hover pointer-coarse:py-2"
        >
          {open ? t("fold.less") : t("fold.prompt")}
        </button>
      )}
    </>
  );
}

function Answer({ item, sessionId }: { item: TextItem; sessionId: string }) {
  return (
    <div data-live={item.live || undefined} className="group/row relative outline-none" tabIndex={-1}>
      <div className="px-1">
        <Markdown text={item.text} live={item.live} />
      </div>
      {!item.live && (
        <>
          <MessageTime sessionId={sessionId} seqs={item.seqs} className="-bottom-3.5 left-1" />
          <MessageMenu sessionId={sessionId} item={item} className="top-0.5 sm:top-8" />
        </>
      )}
      <RawButton sessionId={sessionId} seqs={item.seqs} />
    </div>
  );
}

function Thinking({ item, sessionId }: { item: TextItem; sessionId: string }) {
  const { t } = useTranslation();
  const [chosen, toggle] = useExpansion(item.key, false);
  const content = useId();
  const open = item.live || chosen;
  return (
    <div className="group/row relative outline-none" tabIndex={-1}>
      <div>
        <button
          type="button"
          aria-expanded={open}
          aria-controls={content}
          disabled={item.live}
          onClick={toggle}
          className="flex items-center gap-1.5 rounded-md px-1 py-0.5 text-sm text-ink-3 hover:text-ink disabled:hover:text-ink-3"
        >
          <Brain className={cn("size-3.5", item.live && "animate-breathe")} aria-hidden />
          {item.live ? t("thinking.live") : t("thinking.done")}
          <ChevronRight
            className={cn("size-3 transition-transform", open && "rotate-90", item.live && "hidden")}
            aria-hidden
          />
        </button>
        {open && (
          <p
            id={content}
            className="mt-1 rounded-lg bg-sunken px-3.5 py-2.5 text-sm break-words whitespace-pre-wrap text-ink-2"
          >
            {item.text}
          </p>
        )}
      </div>
      <RawButton sessionId={sessionId} seqs={item.seqs} />
    </div>
  );
}

function Init({ item, sessionId }: { item: InitItem; sessionId: string }) {
  const { t } = useTranslation();
  const parts = [
    item.model,
    item.permissionMode && modeName(t, item.permissionMode),
    item.agentVersion && t("init.version", { version: item.agentVersion }),
    item.toolCount > 0 && t("init.tools", { count: item.toolCount }),
  ].filter((part): part is string => Boolean(part));
  return (
    <Line sessionId={sessionId} item={item} icon={<Info className="size-3.5" aria-hidden />}>
      <Facts lead={t("init.started")} facts={parts} />
    </Line>
  );
}

function Notice({ item, sessionId }: { item: NoticeItem; sessionId: string }) {
  const { t, i18n } = useTranslation();
  if (item.code === "rateLimited") {
    return (
      <div
        role="alert"
        className="flex items-start gap-2 rounded-lg bg-wait-soft px-3 py-2 text-sm text-wait"
      >
        <Hourglass className="mt-0.5 size-4 shrink-0" aria-hidden />
        <p className="min-w-0">
          {item.until === undefined
            ? t("notice.rateLimited")
            : t("notice.rateLimitedUntil", { time: formatMoment(item.until, i18n.language) })}
        </p>
      </div>
    );
  }
  if (item.code === "failed") return <Failure item={item} sessionId={sessionId} />;
  return (
    <Line sessionId={sessionId} item={item} icon={<Info className="size-3.5" aria-hidden />}>
      <span className="break-words whitespace-pre-wrap">
        {item.code === "said" ? (
          item.text
        ) : item.code === "retrying" ? (
          <RetryNotice item={item} sessionId={sessionId} />
        ) : (
          t(`notice.${item.code}`)
        )}
      </span>
      {item.code === "compacted" && item.text && (
        <Unfolding of={item.key} label={t("notice.summary")}>
          <Markdown text={item.text} />
        </Unfolding>
      )}
      {item.code === "unreadable" && item.text && (
        <Unfolding of={item.key} label={t("notice.unreadableRaw")}>
          <p className="font-mono text-xs break-all whitespace-pre-wrap">{item.text}</p>
        </Unfolding>
      )}
    </Line>
  );
}

/** More about a notice, for those who want to know. `of` is the key of its row. */
function Unfolding({ of, label, children }: { of: string; label: string; children: ReactNode }) {
  const [open, toggle] = useExpansion(of, false);
  const content = useId();
  return (
    <>
      <button
        type="button"
        aria-expanded={open}
        aria-controls={content}
        onClick={toggle}
        className="ml-2 inline-flex items-center gap-1 rounded-md font-medium text-ink-2 hover:text-ink pointer-coarse:py-2"
      >
        {label}
        <ChevronRight className={cn("size-3 transition-transform", open && "rotate-90")} aria-hidden />
      </button>
      {open && (
        <div id={content} className="mt-1.5 rounded-lg bg-sunken px-3.5 py-2.5 text-sm text-ink-2">
          {children}
        </div>
      )}
    </>
  );
}

function LooseDecision({ decision, cwd }: { decision: Decision; cwd: string | undefined }) {
  return (
    <div
      className={cn(
        "overflow-hidden rounded-xl border bg-raised shadow-card",
        decisionBorder(decision.request.toolName),
      )}
    >
      <DecisionPanel decision={decision} cwd={cwd} />
    </div>
  );
}

function Sending({ prompt }: { prompt: string }) {
  const { t } = useTranslation();
  return (
    <div className="rounded-xl border border-dashed border-line-strong px-4 py-2.5">
      <p className="flex items-center gap-1.5 text-xs text-ink-3">
        <Clock className="size-3.5" aria-hidden />
        {t("conversation.sending")}
      </p>
      <p className="mt-0.5 break-words whitespace-pre-wrap text-ink-2">{prompt}</p>
    </div>
  );
}

function Working({ sessionId }: { sessionId: string }) {
  const { t } = useTranslation();
  return (
    <div className="flex items-center gap-2 px-1 text-sm text-ink-3">
      <LoaderCircle className="size-3.5 text-accent motion-safe:animate-spin" aria-hidden />
      <span role="status">{t("conversation.working")}</span>
      <TurnClock sessionId={sessionId} />
    </div>
  );
}

/** A subagent's own conversation, inside the card of the call that started it. */
function Nested({ items, sessionId, cwd }: RowContext & { items: readonly Item[] }) {
  const { t } = useTranslation();
  return (
    <div
      role="group"
      aria-label={t("tool.subagent")}
      className="flex flex-col gap-2.5 border-t border-line bg-sunken px-3 py-3"
    >
      {items.map((item) =>
        item.kind === "tool" ? (
          <ToolCard
            key={item.key}
            sessionId={sessionId}
            cwd={cwd}
            tool={item}
            waiting={false}
            decided={undefined}
          />
        ) : (
          <ItemView key={item.key} item={item} sessionId={sessionId} />
        ),
      )}
    </div>
  );
}
