import { ArrowUp, Eraser, Square } from "lucide-react";
import { type KeyboardEvent, memo, useEffect, useId, useRef, useState } from "react";
import { useTranslation } from "react-i18next";
import type { SessionInfo } from "../../gen/events";
import { cn } from "../../lib/cn";
import { joined } from "../../lib/dictation";
import { useDraft } from "../../store/drafts";
import { isAsking } from "../../session/log";
import { useModels } from "../../store/models";

import {
  acknowledgeReturned,
  configureSession,
  continueSession,
  startSession,
  stopSession,
} from "../../store/controller";
import { useApp, useReturned } from "../../store/hooks";
import { store } from "../../store/state";
import { Button } from "../../ui/Button";
import { DictationButton } from "../../ui/DictationButton";
import { focusComposer, useComposerFocus } from "../../ui/focus";
import { IconButton } from "../../ui/IconButton";
import { likeness, useBeginsAnew } from "./beginsAnew";
import { clearView } from "../../store/cleared";
import { complete, type Token, tokenAt } from "./completion";
import { ContextChip } from "./ContextChip";
import { forgetContext, giveBackContext, useUiContext } from "../../store/uiContext";
import { Controls } from "../settings/Controls";
import { imageFiles } from "../../store/images";
import { ImagePicker } from "./ImagePicker";
import { ImageStrip } from "./ImageStrip";
import { PromptField } from "../../ui/PromptField";
import { asQuote, takeQuote, takeRefill, useQuote, useRefill } from "./quotes";
import { notRecalling, step } from "./recall";
import type { Suggestion } from "../../session/suggestions";
import { Suggestions } from "./Suggestions";
import { giveBackImages, useImages } from "../../store/useImages";
import { useSuggestions } from "./useSuggestions";

type Problem = "empty" | "offline" | undefined;

/** Where the conversation goes on. Keyed by session, so that each has its own draft. */
export const Composer = memo(function Composer({ session }: { session: SessionInfo }) {
  const { t } = useTranslation();
  const [text, setText] = useDraft(session.id);
  const [problem, setProblem] = useState<Problem>();
  const [token, setToken] = useState<Token>();
  const [chosen, setChosen] = useState(0);
  const [recall, setRecall] = useState(notRecalling);
  const field = useRef<HTMLTextAreaElement>(null);
  const images = useImages(session.id);
  const context = useUiContext(session.id);
  const suggestions = useSuggestions(session.id, token);
  const models = useModels(session.id, session.claudeSessionId);
  const offline = useApp((state) => state.connection !== "open");
  const refused = useApp((state) => state.refused.get(session.id));
  const anew = useBeginsAnew(session.id);
  const starting = useApp((state) => state.starting?.draft === session.id);
  const startError = useApp((state) => (anew ? state.startError : undefined));
  // A question is answered where it is asked, before anything else is said.
  const locked = useApp((state) => isAsking(state.logs.get(session.id)));
  useComposerFocus(field, locked);
  const running = session.status === "running";
  const id = useId();
  const message = `${id}-message`;
  const suggesting = token !== undefined && suggestions.length > 0;

  function write(value: string): void {
    setText(value);
    setProblem(undefined);
    setChosen(0);
    setRecall(notRecalling);
  }

  function send(): void {
    const prompt = text.trim();
    const extra = { attachments: images.images, context };
    if (locked || starting) return;
    if (prompt === "") setProblem("empty");
    else if (anew) {
      // What was typed and added stays until the session has begun.
      if (!startSession({ prompt, ...likeness(session), ...extra }, session.id)) setProblem("offline");
    } else if (!continueSession(session.id, prompt, extra)) setProblem("offline");
    else {
      write("");
      setToken(undefined);
      images.clear();
      forgetContext(session.id);
    }
  }

  // Prompts that did not arrive come back before what has been typed since, with what went along.
  const returned = useReturned(session.id);
  useEffect(() => {
    if (returned.length === 0) return;
    const texts = returned.map(({ prompt }) => prompt);
    setText((typed) => [...texts, ...(typed === "" ? [] : [typed])].join("\n"));
    giveBackImages(
      session.id,
      returned.flatMap(({ attachments }) => attachments ?? []),
    );
    giveBackContext(session.id, returned.findLast(({ context: along }) => along)?.context);
    acknowledgeReturned(session.id);
  }, [returned, session.id, setText]);

  // Words that were chosen above are put into the field, to be answered.
  const quoted = useQuote(session.id);
  useEffect(() => {
    if (quoted === undefined) return;
    setText((typed) => `${typed}${typed === "" || typed.endsWith("\n") ? "" : "\n"}${asQuote(quoted)}`);
    takeQuote(session.id);
    focusComposer("to write");
  }, [quoted, session.id, setText]);

  // A prompt that the conversation went back to is there to be written anew, before what was typed since.
  const refilled = useRefill(session.id);
  useEffect(() => {
    if (refilled === undefined) return;
    setText((typed) => [refilled.text, ...(typed.trim() === "" ? [] : [typed])].join("\n"));
    giveBackImages(session.id, refilled.attachments);
    takeRefill(session.id);
    focusComposer("to write");
  }, [refilled, session.id, setText]);

  const stop = () => stopSession(session.id);

  function put(value: string, caret: number): void {
    write(value);
    requestAnimationFrame(() => field.current?.setSelectionRange(caret, caret));
  }

  function take(suggestion: Suggestion): void {
    if (!token) return;
    const completed = complete(text, token, suggestion.value);
    put(completed.text, completed.caret);
    setToken(tokenAt(completed.text, completed.caret));
  }

  function onKey(event: KeyboardEvent<HTMLTextAreaElement>): boolean {
    if (event.ctrlKey || event.metaKey || event.altKey || event.shiftKey) return false;
    if (suggesting) {
      const suggestion = suggestions[chosen];
      if (event.key === "ArrowDown") setChosen(Math.min(suggestions.length - 1, chosen + 1));
      else if (event.key === "ArrowUp") setChosen(Math.max(0, chosen - 1));
      else if (event.key === "Escape") setToken(undefined);
      // What is already written out is sent, not completed once more.
      else if (
        suggestion &&
        (event.key === "Tab" || (event.key === "Enter" && suggestion.value !== token.query))
      )
        take(suggestion);
      else return false;
      return true;
    }
    if (event.key !== "ArrowUp" && event.key !== "ArrowDown") return false;
    if (text !== "" && recall.depth === 0) return false;
    const direction = event.key === "ArrowUp" ? "back" : "forth";
    const next = step(recall, earlierPrompts(session.id), text, direction);
    if (!next) return false;
    put(next.text, next.text.length);
    setRecall(next.recall);
    return true;
  }

  const complaint =
    (problem && t(`composer.problem.${problem}`)) ??
    (images.problem && t(`images.problem.${images.problem}`)) ??
    startError ??
    refused;
  const placeholder = locked ? "placeholderAsked" : running ? "placeholderRunning" : "placeholder";
  return (
    // Images can be dropped here; those who can't drop have a button.
    // oxlint-disable-next-line jsx-a11y/no-noninteractive-element-interactions
    <form
      className="mx-auto w-full max-w-[52rem] px-3 pb-3 sm:px-10 sm:pb-4"
      onSubmit={(event) => {
        event.preventDefault();
        send();
      }}
      onDragOver={(event) => event.preventDefault()}
      onDrop={(event) => {
        event.preventDefault();
        images.add(imageFiles(event.dataTransfer));
      }}
    >
      <div
        className={cn(
          "relative rounded-xl border shadow-card transition-colors",
          complaint ? "border-bad" : "border-line-strong focus-within:border-accent",
          locked ? "bg-sunken" : "bg-raised",
        )}
      >
        {suggesting && (
          <Suggestions
            id={`${id}-list`}
            label={t(`composer.suggestions.${token.kind}`)}
            suggestions={suggestions}
            chosen={chosen}
            onChoose={setChosen}
            onTake={take}
          />
        )}
        <ImageStrip images={images.images} onRemove={images.remove} />
        {context && <ContextChip context={context} onRemove={() => forgetContext(session.id)} />}
        <PromptField
          ref={field}
          data-composer
          value={text}
          onChange={write}
          onSelect={(event) => {
            const { value, selectionStart, selectionEnd } = event.currentTarget;
            setToken(selectionStart === selectionEnd ? tokenAt(value, selectionStart) : undefined);
          }}
          onBlur={() => setToken(undefined)}
          onPaste={(event) => {
            const files = imageFiles(event.clipboardData);
            if (files.length === 0) return;
            event.preventDefault();
            images.add(files);
          }}
          onKey={onKey}
          onSend={send}
          onStop={running ? stop : undefined}
          invalid={problem === "empty"}
          role={suggesting ? "combobox" : undefined}
          aria-expanded={suggesting || undefined}
          aria-controls={suggesting ? `${id}-list` : undefined}
          aria-activedescendant={suggesting ? `${id}-list-${chosen}` : undefined}
          aria-label={t("composer.label")}
          aria-describedby={message}
          placeholder={t(`composer.${placeholder}`)}
          disabled={locked}
          className="px-3.5 pt-3 pb-1"
        />
        <div className="flex items-center gap-1 pr-2 pb-2 pl-1.5">
          <div className="flex min-w-0 flex-1 items-center overflow-x-auto [scrollbar-width:none] max-sm:pr-4 max-sm:[mask-image:linear-gradient(to_right,black_calc(100%-1.5rem),transparent)] sm:flex-wrap">
            <Controls
              models={models}
              model={session.settings.model}
              onModel={(model) => configureSession(session.id, { model: model ?? null })}
              mode={session.permissionMode}
              onMode={(permissionMode) => configureSession(session.id, { permissionMode })}
              effort={session.settings.effort}
              onEffort={(effort) => configureSession(session.id, { effort: effort ?? null })}
            />
          </div>
          <IconButton
            label={t("composer.clear")}
            onClick={() => clearView(session.id, session.lastSeq)}
            className="max-sm:hidden"
          >
            <Eraser className="size-4" />
          </IconButton>
          <DictationButton disabled={locked} onText={(heard) => write(joined(text, heard))} />
          <ImagePicker onPick={images.add} />
          {running && (
            <Button size="sm" onClick={stop}>
              <Square className="size-3 fill-current" aria-hidden />
              {t("composer.stop")}
            </Button>
          )}
          {(!running || text.trim() !== "") && (
            <Button size="sm" variant="primary" type="submit" disabled={offline || locked || starting}>
              <ArrowUp className="size-3.5" aria-hidden />
              {running ? t("composer.queue") : t("composer.send")}
            </Button>
          )}
        </div>
      </div>
      <p
        id={message}
        role={complaint ? "alert" : undefined}
        className={cn("px-1 text-xs", complaint && "pt-1.5 text-bad")}
      >
        {complaint}
      </p>
    </form>
  );
});

/** The earlier prompts of this session, newest first. */
function earlierPrompts(sessionId: string): string[] {
  const items = store.getState().logs.get(sessionId)?.transcript.items ?? [];
  const prompts = items.flatMap((item) =>
    item.kind === "prompt" && item.parent === undefined ? [item.text] : [],
  );
  return [...new Set(prompts.toReversed())];
}
