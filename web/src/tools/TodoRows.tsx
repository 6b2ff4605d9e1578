import { CircleCheck, CircleDashed, CircleDotDashed } from "lucide-react";
import { useTranslation } from "react-i18next";
import { cn } from "../lib/cn";
import type { Todo } from "../session/summary";

const looks = {
  completed: { icon: CircleCheck, mark: "text-good", text: "text-ink-3 line-through" },
  in_progress: { icon: CircleDotDashed, mark: "text-accent", text: "font-medium" },
  pending: { icon: CircleDashed, mark: "text-ink-3", text: "" },
} as const;

export function TodoRows({ todos }: { todos: readonly Todo[] }) {
  const { t } = useTranslation();
  return (
    <ul className="flex flex-col gap-1 text-sm">
      {todos.map((todo, index) => {
        const { icon: Icon, mark, text } = looks[todo.status];
        return (
          // oxlint-disable-next-line react/no-array-index-key -- two entries may say the same
          <li key={index} className="flex items-start gap-2">
            <Icon
              role="img"
              aria-label={t(`todo.${todo.status}`)}
              className={cn("mt-[3px] size-3.5 shrink-0", mark)}
            />
            <span className={cn("min-w-0 break-words", text)}>{todo.content}</span>
          </li>
        );
      })}
    </ul>
  );
}
