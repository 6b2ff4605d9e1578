/** What a tool card shows inside: one view for each family of tools. */
import { type ReactNode, useMemo } from "react";
import { useTranslation } from "react-i18next";
import { selectLine } from "../store/uiContext";
import { Fold } from "../ui/Fold";
import { parseAnsi } from "../lib/ansi";
import { cn } from "../lib/cn";
import { HighlightedCode } from "../markdown/HighlightedCode";
import { languageOf } from "../markdown/language";
import { Markdown } from "../markdown/Markdown";
import type { ToolItem } from "../session/items";
import {
  answersOf,
  linesRead,
  pathOf,
  planOf,
  shellCallOf,
  shortValues,
  taskPromptOf,
  todosWritten,
} from "../session/toolCalls";
import { familyOf } from "../session/describe";
import { Diff } from "./Diff";
import { TodoRows } from "./TodoRows";

const VISIBLE_LINES = 12;

interface ToolBodyProps {
  tool: ToolItem;
  sessionId: string;
  /** What the tool's own agent said is shown below. */
  narrated: boolean;
}

export function ToolBody({ tool, sessionId, narrated }: ToolBodyProps) {
  switch (familyOf(tool.name)) {
    case "bash":
      return <BashView tool={tool} />;
    case "read":
      return <ReadView tool={tool} />;
    case "edit":
      return <EditView tool={tool} sessionId={sessionId} />;
    case "todo":
      return <TodoView tool={tool} />;
    case "question":
      return <AnswersView tool={tool} />;
    case "plan":
      return <PlanView tool={tool} />;
    case "agent":
      return <AgentView tool={tool} narrated={narrated} />;
    case "search":
    case "web":
      return <PlainView tool={tool} />;
    default:
      return <JsonView tool={tool} />;
  }
}

function BashView({ tool }: { tool: ToolItem }) {
  const { t } = useTranslation();
  const { command, description, output, errorOutput } = shellCallOf(tool);
  // Without words of its own the title already is the command.
  const inTitle = description === undefined && !command?.includes("\n");
  return (
    <>
      {command !== undefined && !inTitle && (
        <Section label={t("tool.command")}>
          <HighlightedCode code={command} language="bash" className="px-3 py-2 whitespace-pre-wrap" />
        </Section>
      )}
      {output !== undefined && output !== "" && (
        <Section label={t("tool.output")}>
          <Output id={`${tool.key}:out`} text={output} failed={tool.phase === "error"} />
        </Section>
      )}
      {errorOutput !== undefined && errorOutput !== "" && (
        <Section label={t("tool.errorOutput")}>
          <Output id={`${tool.key}:err`} text={errorOutput} failed />
        </Section>
      )}
      {tool.phase === "success" && !output && !errorOutput && <Remark>{t("tool.noOutput")}</Remark>}
    </>
  );
}

function ReadView({ tool }: { tool: ToolItem }) {
  const path = pathOf(tool.input) ?? "";
  const lines = useMemo(() => linesRead(tool), [tool]);
  if (tool.images && tool.images.length > 0) return <Images images={tool.images} />;
  if (tool.output === undefined) return null;
  if (tool.phase === "error") return <Output id={tool.key} text={tool.output} failed />;
  return (
    <Fold id={tool.key} lines={lines} visible={VISIBLE_LINES}>
      {(shown) => (
        <HighlightedCode code={shown.join("\n")} language={languageOf(path)} className="px-3 py-2" />
      )}
    </Fold>
  );
}

function EditView({ tool, sessionId }: { tool: ToolItem; sessionId: string }) {
  const path = pathOf(tool.input);
  return (
    <>
      <Diff
        id={tool.key}
        input={tool.input}
        details={tool.details}
        // Only a finished edit has the lines of the file as it is now.
        onLine={path && tool.details ? (line) => selectLine(sessionId, path, line) : undefined}
      />
      {tool.phase === "error" && tool.output && <Output id={`${tool.key}:err`} text={tool.output} failed />}
    </>
  );
}

function TodoView({ tool }: { tool: ToolItem }) {
  const todos = useMemo(() => todosWritten(tool), [tool]);
  if (todos.length === 0) return <JsonView tool={tool} />;
  return (
    <div className="px-3 py-2.5">
      <TodoRows todos={todos} />
    </div>
  );
}

/** What was asked, and what the user said. */
function AnswersView({ tool }: { tool: ToolItem }) {
  const answers = answersOf(tool);
  if (!answers)
    return tool.output ? <Output id={tool.key} text={tool.output} failed={tool.phase === "error"} /> : null;
  return (
    <dl className="flex flex-col gap-2 px-3 py-2.5 text-sm">
      {answers.map(([question, answer]) => (
        <div key={question}>
          <dt className="text-ink-2">{question}</dt>
          <dd className="font-medium">{answer}</dd>
        </div>
      ))}
    </dl>
  );
}

function PlanView({ tool }: { tool: ToolItem }) {
  const plan = planOf(tool.input, tool.details);
  return (
    <>
      {plan && (
        <div className="px-4 py-3">
          <Markdown text={plan} />
        </div>
      )}
      {tool.phase === "error" && tool.output && <Output id={`${tool.key}:err`} text={tool.output} failed />}
    </>
  );
}

/** The result that a background agent's start gives the model; it means nothing to a reader. */
const LAUNCHED = /^Async agent launched/;

/** A subagent's prompt, and its answer unless that is shown below. */
function AgentView({ tool, narrated }: { tool: ToolItem; narrated: boolean }) {
  const { t } = useTranslation();
  const prompt = taskPromptOf(tool);
  if (prompt === undefined) return <JsonView tool={tool} />;
  const answer = tool.output !== undefined && !LAUNCHED.test(tool.output) ? tool.output : undefined;
  return (
    <>
      <Section label={t("tool.task")}>
        <Fold id={`${tool.key}:task`} lines={prompt.split("\n")} visible={VISIBLE_LINES}>
          {(shown) => (
            <p className="px-3 py-2.5 text-sm break-words whitespace-pre-wrap text-ink-2">
              {shown.join("\n")}
            </p>
          )}
        </Fold>
      </Section>
      {answer !== undefined && tool.phase === "error" && (
        <Output id={`${tool.key}:err`} text={answer} failed />
      )}
      {answer !== undefined && tool.phase !== "error" && !narrated && (
        <Section label={t("tool.output")}>
          <div className="px-3 py-2.5">
            <Markdown text={answer} />
          </div>
        </Section>
      )}
    </>
  );
}

function PlainView({ tool }: { tool: ToolItem }) {
  return (
    <>
      <InputList input={tool.input} />
      {tool.output ? <Output id={tool.key} text={tool.output} failed={tool.phase === "error"} /> : null}
    </>
  );
}

export function JsonView({ tool }: { tool: ToolItem }) {
  const { t } = useTranslation();
  return (
    <>
      <Section label={t("tool.input")}>
        <JsonLines id={`${tool.key}:in`} value={tool.input} />
      </Section>
      {tool.output && (
        <Section label={t("tool.output")}>
          <Output id={`${tool.key}:out`} text={tool.output} failed={tool.phase === "error"} />
        </Section>
      )}
      {tool.images && tool.images.length > 0 && <Images images={tool.images} />}
    </>
  );
}

export function JsonLines({ id, value }: { id: string; value: unknown }) {
  const lines = useMemo(() => JSON.stringify(value, null, 2).split("\n"), [value]);
  return (
    <Fold id={id} lines={lines} visible={VISIBLE_LINES}>
      {(shown) => <HighlightedCode code={shown.join("\n")} language="json" className="px-3 py-2" />}
    </Fold>
  );
}

/** Short values of an input, one a line. */
function InputList({ input }: Pick<ToolItem, "input">) {
  return (
    <dl className="grid grid-cols-[auto_1fr] gap-x-3 gap-y-0.5 px-3 py-2 font-mono text-xs">
      {shortValues(input).map(([name, value]) => (
        <div key={name} className="contents">
          <dt className="text-ink-3">{name}</dt>
          <dd className="break-words whitespace-pre-wrap">{value}</dd>
        </div>
      ))}
    </dl>
  );
}

const ansiClasses = {
  black: "text-ink-3",
  red: "text-bad",
  green: "text-good",
  yellow: "text-wait",
  blue: "text-accent",
  magenta: "text-accent",
  cyan: "text-accent",
  white: "text-ink",
} as const;

export function Output({ id, text, failed }: { id: string; text: string; failed: boolean }) {
  const lines = useMemo(() => text.replace(/\n+$/, "").split("\n"), [text]);
  return (
    <Fold id={id} lines={lines} visible={VISIBLE_LINES}>
      {(shown) => (
        <pre
          tabIndex={0}
          className={cn(
            "overflow-x-auto px-3 py-2 font-mono text-xs leading-5 break-words whitespace-pre-wrap",
            failed && "text-bad",
          )}
        >
          {parseAnsi(shown.join("\n")).map((span, index) => (
            <span
              // oxlint-disable-next-line react/no-array-index-key -- spans have no identity but their place
              key={index}
              className={cn(
                span.color && ansiClasses[span.color],
                span.bold && "font-semibold",
                span.dim && "text-ink-3",
              )}
            >
              {span.text}
            </span>
          ))}
        </pre>
      )}
    </Fold>
  );
}

function Images({ images }: { images: readonly string[] }) {
  const { t } = useTranslation();
  return (
    <div className="flex flex-wrap gap-2 p-3">
      {images.map((address) => (
        <img
          key={address}
          src={address}
          alt={t("tool.image")}
          className="max-h-80 max-w-full rounded-md border border-line"
        />
      ))}
    </div>
  );
}

export function Section({ label, children }: { label: string; children: ReactNode }) {
  return (
    <section aria-label={label} className="border-t border-line first:border-t-0">
      {children}
    </section>
  );
}

export const Remark = ({ children }: { children: ReactNode }) => (
  <p className="border-t border-line px-3 py-2 text-xs text-ink-3 first:border-t-0">{children}</p>
);
