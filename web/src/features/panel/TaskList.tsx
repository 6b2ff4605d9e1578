import { LoaderCircle } from "lucide-react";
import { useTranslation } from "react-i18next";
import { formatCount, formatDuration } from "../../lib/format";
import type { Task } from "../../session/summary";

/** Subagents and background tasks that run, with what they took so far. */
export function TaskList({ tasks }: { tasks: readonly Task[] }) {
  const { t, i18n } = useTranslation();
  return (
    <ul className="flex flex-col gap-1.5">
      {tasks.map((task) => {
        const facts = [
          task.agent,
          task.background && t("task.background"),
          task.tools !== undefined && t("task.tools", { count: task.tools }),
          task.tokens !== undefined && t("task.tokens", { tokens: formatCount(task.tokens, i18n.language) }),
          task.durationMs !== undefined && formatDuration(task.durationMs, i18n.language),
        ].filter(Boolean);
        return (
          <li key={task.id} className="flex items-start gap-2 text-sm">
            <LoaderCircle
              role="img"
              aria-label={t("task.running")}
              className="mt-[3px] size-3.5 shrink-0 text-accent motion-safe:animate-spin"
            />
            <span className="min-w-0 flex-1">
              <span className="block break-words">{task.description}</span>
              {facts.length > 0 && <span className="block text-xs text-ink-3">{facts.join(" · ")}</span>}
            </span>
          </li>
        );
      })}
    </ul>
  );
}
