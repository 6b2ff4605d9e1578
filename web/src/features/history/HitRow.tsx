import { Bot, FoldVertical, Sparkle, User, Wrench } from "lucide-react";
import { useTranslation } from "react-i18next";
import type { SearchResult } from "../../gen/history";
import { formatAge } from "../../lib/format";
import { viewHref } from "./address";
import { speaker } from "./speaker";

const icons = { agent: Bot, summary: FoldVertical, tool: Wrench, user: User, assistant: Sparkle };

/** A message that was found, with the words that were searched for marked. Opens the conversation there. */
export function HitRow({ hit, now }: { hit: SearchResult; now: number }) {
  const { t, i18n } = useTranslation();
  const who = speaker(hit);
  const Icon = icons[who];
  return (
    <a
      href={viewHref({ view: "session", id: hit.session_id, at: hit.uuid })}
      className="flex flex-col gap-1 rounded-lg px-2.5 py-2.5 -outline-offset-2 transition-colors hover:bg-hover"
    >
      <span className="flex items-center gap-2 text-xs text-ink-3">
        <span className="inline-flex shrink-0 items-center gap-1">
          <Icon className="size-3.5" aria-hidden />
          {t(`history.found.by.${who}`)}
        </span>
        <span className="min-w-0 flex-1 truncate">{hit.title || t("history.untitled")}</span>
        <time dateTime={hit.timestamp} className="shrink-0 tabular-nums">
          {formatAge(Date.parse(hit.timestamp), now, i18n.language)}
        </time>
      </span>
      <span className="line-clamp-2 text-sm break-words">
        {hit.fragments.map((fragment, index) =>
          fragment.is_match ? (
            // oxlint-disable-next-line react/no-array-index-key -- pieces of one text
            <mark key={index} className="rounded-sm bg-wait-soft px-0.5 font-medium text-wait">
              {fragment.text}
            </mark>
          ) : (
            fragment.text
          ),
        )}
      </span>
    </a>
  );
}
