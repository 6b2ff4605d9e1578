import { RefreshCw } from "lucide-react";
import { useTranslation } from "react-i18next";
import type { SessionInfo } from "../../gen/events";
import { cn } from "../../lib/cn";
import { formatCount } from "../../lib/format";
import { useLoaded } from "../../lib/useLoaded";
import { inquire } from "../../store/inquiries";
import { IconButton } from "../../ui/IconButton";
import { parseContext } from "../../session/contextUsage";

const colours = [
  "bg-accent",
  "bg-good",
  "bg-wait",
  "bg-bad",
  "bg-accent/50",
  "bg-good/50",
  "bg-wait/50",
  "bg-bad/50",
];

/** How full the model's memory is, and with what. Only a running agent can tell the parts; the size is known anyway. */
export function ContextPicture({ session, tokens }: { session: SessionInfo; tokens: number | undefined }) {
  const { t, i18n } = useTranslation();
  // Asked again whenever a turn has begun or ended.
  const [loaded, reload] = useLoaded(`${session.id}:${session.status}`, async () =>
    parseContext(await inquire(session.id, "contextUsage")),
  );
  const context = loaded.state === "ready" ? loaded.value : undefined;

  if (!context) {
    return (
      <p className="text-sm text-ink-2">
        {tokens === undefined
          ? t("panel.contextUnknown")
          : t("panel.contextTokens", { tokens: formatCount(tokens, i18n.language) })}
      </p>
    );
  }
  const percent = new Intl.NumberFormat(i18n.language, { style: "percent" }).format(
    context.used / context.size,
  );
  return (
    <>
      <div className="flex items-baseline justify-between gap-2 text-sm">
        <span className="tabular-nums">
          {t("panel.contextOf", {
            used: formatCount(context.used, i18n.language),
            size: formatCount(context.size, i18n.language),
          })}
        </span>
        <span className="flex items-center gap-1 font-medium tabular-nums">
          {percent}
          <IconButton label={t("panel.refresh")} onClick={reload} className="size-6">
            <RefreshCw className="size-3" />
          </IconButton>
        </span>
      </div>
      <div
        role="img"
        aria-label={t("panel.contextPicture", { percent })}
        className="mt-1.5 flex h-2 gap-px overflow-hidden rounded-full bg-active"
      >
        {context.parts.map((part, index) => (
          <span
            key={part.name}
            className={cn("h-full", colours[index % colours.length])}
            style={{ width: `${(part.tokens / context.size) * 100}%` }}
          />
        ))}
      </div>
      <ul className="mt-2 flex flex-col gap-0.5 text-xs text-ink-2">
        {context.parts.map((part, index) => (
          <li key={part.name} className="flex items-center gap-2">
            <span className={cn("size-2 shrink-0 rounded-sm", colours[index % colours.length])} aria-hidden />
            <span className="min-w-0 flex-1 truncate">
              {t(`panel.part.${part.name}`, { defaultValue: part.name })}
            </span>
            <span className="tabular-nums">{formatCount(part.tokens, i18n.language)}</span>
          </li>
        ))}
      </ul>
    </>
  );
}
