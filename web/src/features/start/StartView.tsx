import { ArrowUp, LoaderCircle } from "lucide-react";
import { type KeyboardEvent, useId, useRef, useState } from "react";
import { useTranslation } from "react-i18next";
import { Controls } from "../settings/Controls";
import { imageFiles } from "../../store/images";
import { ImagePicker } from "../conversation/ImagePicker";
import { ImageStrip } from "../conversation/ImageStrip";
import { PromptField } from "../../ui/PromptField";
import { useImages } from "../../store/useImages";
import { noSandbox, SandboxChoice } from "../settings/SandboxField";
import { ToolsChoice } from "../settings/ToolsField";
import type { PermissionMode } from "../../gen/events";
import { cn } from "../../lib/cn";
import { readStored, writeStored } from "../../lib/storage";
import { joined } from "../../lib/dictation";
import { DictationButton } from "../../ui/DictationButton";
import { forgetDraft, useDraft } from "../../store/drafts";
import { useModels } from "../../store/models";

import { continueSession, onceConnected, startSession } from "../../store/controller";
import { useApp, useSessionList } from "../../store/hooks";
import { go } from "../../store/route";
import { Button } from "../../ui/Button";
import { focusComposer, useComposerFocus } from "../../ui/focus";
import { keepAside, putAside } from "./afresh";
import { Examples } from "./Examples";
import { FolderField } from "./FolderField";
import { useLatest } from "./latest";

type Problem = "empty" | "offline" | undefined;

export function StartView() {
  const { t } = useTranslation();
  const [prompt, setPrompt] = useDraft("new");
  const [chosen, setFolder] = useState(() => readStored("folder"));
  const [mode, setMode] = useState<PermissionMode>("default");
  const [model, setModel] = useState<string>();
  const [effort, setEffort] = useState<string>();
  const [tools, setTools] = useState<readonly string[]>([]);
  const [sandbox, setSandbox] = useState(noSandbox);
  const [continuing, setContinuing] = useState(false);
  const [problem, setProblem] = useState<Problem>();
  const images = useImages("new");
  const defaultFolder = useApp((state) => state.system?.cwd);
  // The server's own folder is the suggestion until the user has worked somewhere.
  const folder = chosen ?? defaultFolder ?? "";
  const sessions = useSessionList();
  const latest = useLatest(folder, sessions);
  const models = useModels(sessions[0]?.id, sessions[0]?.claudeSessionId);
  const starting = useApp((state) => state.starting !== undefined);
  const refused = useApp((state) => state.startError);
  const message = useId();
  const field = useRef<HTMLTextAreaElement>(null);
  useComposerFocus(field);

  function submit(): void {
    if (prompt.trim() === "") setProblem("empty");
    else if (!starting) onceConnected(start);
  }

  function start(): void {
    const text = prompt.trim();
    const attachments = images.images;
    const going = continuing ? latest : undefined;
    const sent =
      going?.kind === "session"
        ? continueSession(going.id, text, { attachments })
        : startSession({
            prompt: text,
            cwd: folder.trim() || undefined,
            resume: going?.id,
            permissionMode: mode,
            model,
            effort,
            allowedTools: tools.join(",") || undefined,
            ...(sandbox.level !== "off" && {
              sandbox: sandbox.level,
              sandboxHosts: [...sandbox.hosts],
              sandboxFolders: [...sandbox.folders],
            }),
            attachments,
          });
    setProblem(sent ? undefined : "offline");
    if (!sent) return;
    writeStored("folder", folder.trim());
    if (going?.kind !== "session") return;
    forgetDraft("new");
    images.clear();
    setPrompt("");
    go({ view: "session", id: going.id });
  }

  function pick(example: string): void {
    if (prompt.trim() !== "" && prompt !== example) keepAside(prompt, () => setPrompt(prompt));
    setPrompt(example);
    focusComposer("to write");
  }

  /** An empty field takes back what was put aside, as a session's takes its earlier prompts. */
  function onKey(event: KeyboardEvent): boolean {
    const aside = putAside();
    if (event.key !== "ArrowUp" || prompt !== "" || !aside) return false;
    setPrompt(aside);
    return true;
  }

  const complaint =
    (problem && t(`composer.problem.${problem}`)) ??
    (images.problem && t(`images.problem.${images.problem}`)) ??
    refused;
  return (
    <div className="min-h-0 flex-1 overflow-y-auto">
      <div className="mx-auto flex min-h-full w-full max-w-3xl flex-col justify-center px-4 pt-6 pb-[14vh]">
        <h1 className="text-2xl font-semibold tracking-tight text-balance">{t("start.title")}</h1>
        <p className="mt-1.5 text-pretty text-ink-2">{t("start.subtitle")}</p>
        {/* Images can be dropped here; those who can't drop have a button. */}
        {/* oxlint-disable-next-line jsx-a11y/no-noninteractive-element-interactions */}
        <form
          className="mt-6"
          onSubmit={(event) => {
            event.preventDefault();
            submit();
          }}
          onDragOver={(event) => event.preventDefault()}
          onDrop={(event) => {
            event.preventDefault();
            images.add(imageFiles(event.dataTransfer));
          }}
        >
          <div
            className={cn(
              "rounded-xl border bg-raised shadow-card transition-colors",
              complaint ? "border-bad" : "border-line-strong focus-within:border-accent",
            )}
          >
            <ImageStrip images={images.images} onRemove={images.remove} />
            <PromptField
              ref={field}
              data-composer
              value={prompt}
              onChange={(value) => {
                setPrompt(value);
                setProblem(undefined);
              }}
              onPaste={(event) => {
                const files = imageFiles(event.clipboardData);
                if (files.length === 0) return;
                event.preventDefault();
                images.add(files);
              }}
              onKey={onKey}
              onSend={submit}
              invalid={problem === "empty"}
              aria-label={t("start.prompt")}
              aria-describedby={message}
              placeholder={t("start.placeholder")}
              className="min-h-24 px-4 pt-3.5 pb-2"
            />
            <div className="border-t border-line px-2 py-1.5">
              <FolderField value={folder} onChange={setFolder} />
            </div>
            <div className="flex flex-wrap items-center gap-x-1 gap-y-1.5 border-t border-line p-2">
              <div className="flex min-w-0 flex-wrap items-center gap-y-1 max-sm:w-full">
                <Controls
                  models={models}
                  model={model}
                  onModel={setModel}
                  mode={mode}
                  onMode={setMode}
                  effort={effort}
                  onEffort={setEffort}
                />
              </div>
              <ToolsChoice value={tools} onChange={setTools} named className="h-8 text-sm text-ink-2" />
              <SandboxChoice
                value={sandbox}
                onChange={setSandbox}
                named
                className="h-8 text-sm text-ink-2 max-sm:text-xs"
              />
              {/* At the right end, in a line of their own as well. */}
              <span className="ml-auto flex items-center gap-1">
                <DictationButton onText={(heard) => setPrompt(joined(prompt, heard))} />
                <ImagePicker onPick={images.add} />
                <Button type="submit" variant="primary" disabled={starting}>
                  {starting ? (
                    <LoaderCircle className="size-4 motion-safe:animate-spin" aria-hidden />
                  ) : (
                    <ArrowUp className="size-4" aria-hidden />
                  )}
                  {starting ? t("start.starting") : t("start.submit")}
                </Button>
              </span>
            </div>
          </div>
          <p
            id={message}
            role={complaint ? "alert" : undefined}
            className={cn("px-1 text-sm", complaint && "pt-2 text-bad")}
          >
            {complaint}
          </p>
          {latest && (
            <label className="mt-3 flex w-fit max-w-full items-center gap-2 px-1 text-sm text-ink-2">
              <input
                type="checkbox"
                checked={continuing}
                onChange={(event) => setContinuing(event.target.checked)}
                className="size-3.5 shrink-0 accent-accent"
              />
              <span className="truncate">{t("start.continue", { title: latest.title })}</span>
            </label>
          )}
        </form>
        <Examples onPick={pick} />
      </div>
    </div>
  );
}
