import { CircleAlert, CircleCheck, CircleSlash, LoaderCircle } from "lucide-react";
import { useTranslation } from "react-i18next";
import { cn } from "../../lib/cn";
import { formatCount, formatDuration } from "../../lib/format";
import type { Task, TaskState } from "../../session/tasks";

const marks: Record<TaskState, { icon: typeof CircleCheck; className: string }> = {
  running: { icon: LoaderCircle, className: "text-accent motion-safe:animate-spin" },
  completed: { icon: CircleCheck, className: "text-good" },
  failed: { icon: CircleAlert, className: "text-bad" },
  stopped: { icon: CircleSlash, className: "text-ink-3" },
};

/** Subagents and background tasks, with what they took. */
export function TaskList({ tasks }: { tasks: readonly Task[] }) {
  const { t, i18n } = useTranslation();
  return (
    <ul className="flex flex-col gap-1.5">
      {tasks.map((task) => {
        const { icon: Icon, className } = marks[task.state];
        const facts = [
          task.agent,
          task.background && t("task.background"),
          task.tools !== undefined && t("task.tools", { count: task.tools }),
          task.tokens !== undefined && t("task.tokens", { tokens: formatCount(task.tokens, i18n.language) }),
          task.durationMs !== undefined && formatDuration(task.durationMs, i18n.language),
        ].filter(Boolean);
        return (
          <li key={task.id} className="flex items-start gap-2 text-sm">
            <Icon
              role="img"
              aria-label={t(`task.state.${task.state}`)}
              className={cn("mt-[3px] size-3.5 shrink-0", className)}
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
