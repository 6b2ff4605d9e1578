import { Anchor } from "lucide-react";
import { useEffect, useState } from "react";
import { useTranslation } from "react-i18next";
import { DenyForm } from "../decisions/DenyForm";
import { keyNames, useDecisionPanel } from "../decisions/useDecisionPanel";
import { visible } from "../../session/decisions/inputFields";
import { HighlightedCode } from "../../markdown/HighlightedCode";
import { toolName } from "../../session/describe";
import { Button } from "../../ui/Button";
import { Kbd } from "../../ui/Kbd";
import { block, goOn, type HookCall, subjectOf } from "../../session/hookCalls";
import { answerCallback, useHooks } from "../../store/hookCalls";

/** The callbacks of a session that wait, between its conversation and the field. */
export function HookCalls({ sessionId }: { sessionId: string }) {
  const calls = useHooks((state) => state.calls);
  const own = calls.filter((call) => call.sessionId === sessionId);
  if (own.length === 0) return null;
  return (
    <div className="mx-auto flex max-h-[60%] w-full max-w-[52rem] shrink-0 flex-col gap-2 overflow-y-auto px-3 pb-2 sm:px-10">
      {own.map((call) => (
        <HookPanel key={call.callbackId} call={call} />
      ))}
    </div>
  );
}

/** One callback: what has happened or is about to, and whether it may. */
export function HookPanel({ call }: { call: HookCall }) {
  const { t } = useTranslation();
  const [blocking, setBlocking] = useState(false);
  const { tool, details } = subjectOf(call.input);
  const event = t(`hooks.event.${call.hookEvent}`, { defaultValue: call.hookEvent });

  const allow = () => answerCallback(call, goOn());
  const { ref, ready, marks } = useDecisionPanel<HTMLDivElement>(
    blocking ? {} : { allow, deny: () => setBlocking(true) },
    false,
  );

  return (
    <div
      ref={ref}
      {...marks}
      role="group"
      tabIndex={0}
      aria-label={t("hooks.label", { event: call.hookEvent })}
      className="shrink-0 overflow-hidden rounded-xl border border-wait/60 bg-raised shadow-card outline-none focus-visible:border-wait focus-visible:ring-3 focus-visible:ring-wait/25"
    >
      <div className="flex items-center gap-2 bg-wait-soft px-3 py-2 text-sm">
        <Anchor className="size-4 shrink-0 text-wait" aria-hidden />
        <p className="min-w-0 flex-1">
          <span className="font-medium">{event}</span>
          {tool && <span className="ml-2 text-xs text-ink-2">{toolName(t, tool)}</span>}
        </p>
        <Countdown until={call.until} />
      </div>
      <HighlightedCode
        code={visible(JSON.stringify(details, null, 2))}
        language="json"
        className="max-h-56 overflow-y-auto px-3 py-2.5 whitespace-pre-wrap"
      />
      <div className="border-t border-line px-3 py-2.5">
        {blocking ? (
          <DenyForm
            label={t("permission.reason")}
            placeholder={t("permission.reasonHint")}
            confirm={t("hooks.block")}
            onDeny={(reason) => answerCallback(call, block(call.hookEvent, reason ?? t("hooks.blocked")))}
            onBack={() => setBlocking(false)}
          />
        ) : (
          <div className="flex flex-wrap items-center gap-2">
            <Button variant="primary" aria-disabled={!ready} onClick={() => ready && allow()}>
              {t("hooks.goOn")}
              <Kbd>{keyNames.allow}</Kbd>
            </Button>
            <Button variant="danger" onClick={() => setBlocking(true)}>
              {t("hooks.blockMore")}
              <Kbd>{keyNames.deny}</Kbd>
            </Button>
          </div>
        )}
      </div>
    </div>
  );
}

function Countdown({ until }: { until: number }) {
  const { t } = useTranslation();
  const [left, setLeft] = useState(() => until - Date.now());
  useEffect(() => {
    const timer = setInterval(() => setLeft(until - Date.now()), 1_000);
    return () => clearInterval(timer);
  }, [until]);
  return (
    <span className="shrink-0 text-xs text-ink-3 tabular-nums">
      {t("hooks.left", { count: Math.max(0, Math.ceil(left / 1000)) })}
    </span>
  );
}
