import { ArrowUp, Check, Clock, Pencil, Send, X } from "lucide-react";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import type { QueuedPrompt } from "../../session/prompts";
import { changeQueue, flushQueue } from "../../store/controller";
import { IconButton } from "../../ui/IconButton";
import { PromptField } from "../../ui/PromptField";

interface QueuedProps {
  sessionId: string;
  state: "queued" | "kept";
  queue: readonly QueuedPrompt[];
  prompt: QueuedPrompt;
}

/** A prompt that waits for its turn: it can be changed, moved up, taken out, and sent when nothing runs. */
export function Queued({ sessionId, state, queue, prompt }: QueuedProps) {
  const { t } = useTranslation();
  const index = queue.indexOf(prompt);
  const before = queue[index - 1];
  const [edited, setEdited] = useState<string>();
  const change = (prompts: readonly QueuedPrompt[]) => changeQueue(sessionId, queue, prompts);

  function save(): void {
    const text = edited?.trim();
    if (text && text !== prompt.prompt) change(queue.with(index, { ...prompt, prompt: text }));
    setEdited(undefined);
  }

  return (
    <div className="rounded-xl border border-dashed border-line-strong py-2 pr-2 pl-4">
      <div className="flex min-h-7 items-center gap-1.5 text-xs text-ink-3">
        <Clock className="size-3.5 shrink-0" aria-hidden />
        <span className="min-w-0 flex-1">{t(`conversation.${state}`)}</span>
        {edited === undefined && (
          <span className="flex shrink-0 items-center">
            {state === "kept" && index === 0 && (
              <IconButton label={t("queue.send")} onClick={() => flushQueue(sessionId)}>
                <Send className="size-3.5" />
              </IconButton>
            )}
            {before && (
              <IconButton
                label={t("queue.up")}
                onClick={() => change(queue.with(index, before).with(index - 1, prompt))}
              >
                <ArrowUp className="size-3.5" />
              </IconButton>
            )}
            <IconButton label={t("queue.edit")} onClick={() => setEdited(prompt.prompt)}>
              <Pencil className="size-3.5" />
            </IconButton>
            <IconButton
              label={t("queue.remove")}
              onClick={() => change(queue.filter((each) => each !== prompt))}
            >
              <X className="size-3.5" />
            </IconButton>
          </span>
        )}
        {edited !== undefined && (
          <IconButton label={t("common.save")} onClick={save}>
            <Check className="size-3.5" />
          </IconButton>
        )}
      </div>
      {edited === undefined ? (
        <p className="mt-0.5 pr-2 break-words whitespace-pre-wrap text-ink-2">{prompt.prompt}</p>
      ) : (
        <PromptField
          // The user has just asked to change it.
          // oxlint-disable-next-line jsx-a11y/no-autofocus
          autoFocus
          aria-label={t("queue.edit")}
          value={edited}
          onChange={setEdited}
          onSend={save}
          onStop={() => setEdited(undefined)}
          invalid={false}
          className="mt-0.5 rounded-md border border-line-strong px-2 py-1"
        />
      )}
    </div>
  );
}
