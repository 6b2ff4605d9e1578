import { ArrowUp, LoaderCircle } from "lucide-react";
import { useId, useState } from "react";
import { useTranslation } from "react-i18next";
import { PromptField } from "../conversation/PromptField";
import type { PermissionMode } from "../gen/events";
import { cn } from "../lib/cn";
import { readStored, writeStored } from "../lib/storage";
import { useDraft } from "../session/drafts";
import { startSession } from "../store/controller";
import { useApp } from "../store/hooks";
import { Button } from "../ui/Button";
import { Choice } from "../ui/Choice";
import { Examples } from "./Examples";
import { FolderField } from "./FolderField";

const modes = ["default", "acceptEdits", "plan", "bypassPermissions"] as const satisfies PermissionMode[];

type Problem = "empty" | "offline" | undefined;

export function StartView() {
  const { t } = useTranslation();
  const [prompt, setPrompt] = useDraft("new");
  const [chosen, setFolder] = useState(() => readStored("folder"));
  const [mode, setMode] = useState<PermissionMode>("default");
  const [model, setModel] = useState("");
  const [problem, setProblem] = useState<Problem>();
  const defaultFolder = useApp((state) => state.system?.cwd);
  // The server's own folder is the suggestion until the user has worked somewhere.
  const folder = chosen ?? defaultFolder ?? "";
  const starting = useApp((state) => state.starting !== undefined);
  const refused = useApp((state) => state.startError);
  const message = useId();

  function start(): void {
    const text = prompt.trim();
    if (text === "") {
      setProblem("empty");
      return;
    }
    const sent = startSession({
      prompt: text,
      cwd: folder.trim() || undefined,
      permissionMode: mode,
      model: model.trim() || undefined,
    });
    setProblem(sent ? undefined : "offline");
    if (sent) writeStored("folder", folder.trim());
  }

  return (
    <>
      <div className="min-h-0 flex-1 overflow-y-auto">
        <div className="mx-auto flex min-h-full w-full max-w-2xl flex-col justify-center px-4 pt-4 pb-[16vh]">
          <h1 className="text-2xl font-semibold tracking-tight text-balance">{t("start.title")}</h1>
          <p className="mt-1.5 text-ink-2">{t("start.subtitle")}</p>
          <form
            className="mt-6"
            onSubmit={(event) => {
              event.preventDefault();
              start();
            }}
          >
            <div
              className={cn(
                "rounded-xl border bg-raised shadow-card transition-colors focus-within:border-accent",
                problem === "empty" ? "border-bad" : "border-line-strong",
              )}
            >
              <PromptField
                value={prompt}
                onChange={(value) => {
                  setPrompt(value);
                  setProblem(undefined);
                }}
                onSend={start}
                invalid={problem === "empty"}
                aria-label={t("start.prompt")}
                aria-describedby={message}
                placeholder={t("start.placeholder")}
                className="min-h-24 px-4 pt-3.5 pb-2"
              />
              <div className="border-t border-line px-2 py-1.5">
                <FolderField value={folder} onChange={setFolder} />
              </div>
              <div className="flex flex-wrap items-center gap-1 border-t border-line p-2">
                <Choice
                  label={t("start.mode")}
                  value={mode}
                  onChange={setMode}
                  options={modes.map((value) => ({
                    value,
                    label: t(`mode.${value}.name`),
                    hint: t(`mode.${value}.hint`),
                  }))}
                />
                <input
                  aria-label={t("start.model")}
                  placeholder={t("start.modelHint")}
                  value={model}
                  onChange={(event) => setModel(event.target.value)}
                  spellCheck={false}
                  className="h-8 w-36 min-w-0 flex-1 rounded-lg bg-transparent px-2.5 text-sm outline-none hover:bg-hover focus-visible:bg-hover"
                />
                <Button type="submit" variant="primary" disabled={starting}>
                  {starting ? (
                    <LoaderCircle className="size-4 motion-safe:animate-spin" aria-hidden />
                  ) : (
                    <ArrowUp className="size-4" aria-hidden />
                  )}
                  {starting ? t("start.starting") : t("start.submit")}
                </Button>
              </div>
            </div>
            <p
              id={message}
              role={problem || refused ? "alert" : undefined}
              className={cn("px-1 text-sm", (problem || refused) && "pt-2 text-bad")}
            >
              {problem ? t(`composer.problem.${problem}`) : refused}
            </p>
          </form>
          <Examples onPick={setPrompt} />
        </div>
      </div>
    </>
  );
}
