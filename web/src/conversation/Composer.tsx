import { ArrowUp, Square } from "lucide-react";
import { useEffect, useId, useState } from "react";
import { useTranslation } from "react-i18next";
import type { SessionInfo } from "../gen/events";
import { cn } from "../lib/cn";
import { useDraft } from "../session/drafts";
import { acknowledgeReturned, continueSession, stopSession } from "../store/controller";
import { useApp } from "../store/hooks";
import { Button } from "../ui/Button";
import { PromptField } from "./PromptField";

type Problem = "empty" | "offline" | undefined;

/** Where the conversation goes on. Keyed by session, so that each has its own draft. */
export function Composer({ session }: { session: SessionInfo }) {
  const { t } = useTranslation();
  const [text, setText] = useDraft(session.id);
  const [problem, setProblem] = useState<Problem>();
  const offline = useApp((state) => state.connection !== "open");
  const running = session.status === "running";
  const message = useId();

  function send(): void {
    const prompt = text.trim();
    if (prompt === "") setProblem("empty");
    else if (!continueSession(session.id, prompt)) setProblem("offline");
    else {
      setText("");
      setProblem(undefined);
    }
  }

  // A prompt that did not arrive comes back before what has been typed since.
  const returned = useApp((state) => state.outbox.returned.get(session.id));
  useEffect(() => {
    if (returned === undefined) return;
    setText((typed) => (typed === "" ? returned : `${returned}\n${typed}`));
    acknowledgeReturned(session.id);
  }, [returned, session.id, setText]);

  const stop = () => stopSession(session.id);

  return (
    <form
      className="mx-auto w-full max-w-[52rem] px-3 pb-3 sm:px-10 sm:pb-4"
      onSubmit={(event) => {
        event.preventDefault();
        send();
      }}
    >
      <div
        className={cn(
          "rounded-xl border bg-raised shadow-card transition-colors focus-within:border-accent",
          problem === "empty" ? "border-bad" : "border-line-strong",
        )}
      >
        <PromptField
          value={text}
          onChange={(value) => {
            setText(value);
            setProblem(undefined);
          }}
          onSend={send}
          onStop={running ? stop : undefined}
          invalid={problem === "empty"}
          aria-label={t("composer.label")}
          aria-describedby={message}
          placeholder={running ? t("composer.placeholderRunning") : t("composer.placeholder")}
          className="px-3.5 pt-3 pb-1"
        />
        <div className="flex items-center gap-2 pr-2 pb-2 pl-3.5">
          <span className="min-w-0 flex-1 truncate text-xs text-ink-3">
            <span className="font-medium text-ink-2">{t(`mode.${session.permissionMode}.name`)}</span>
            <span className="hidden sm:inline"> · {t("composer.keys")}</span>
          </span>
          {running && (
            <Button size="sm" onClick={stop}>
              <Square className="size-3 fill-current" aria-hidden />
              {t("composer.stop")}
            </Button>
          )}
          {(!running || text.trim() !== "") && (
            <Button size="sm" variant="primary" type="submit" disabled={offline}>
              <ArrowUp className="size-3.5" aria-hidden />
              {running ? t("composer.queue") : t("composer.send")}
            </Button>
          )}
        </div>
      </div>
      <p
        id={message}
        role={problem ? "alert" : undefined}
        className={cn("px-1 text-xs", problem && "pt-1.5 text-bad")}
      >
        {problem && t(`composer.problem.${problem}`)}
      </p>
    </form>
  );
}
