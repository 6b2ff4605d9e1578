import { ShieldQuestionMark } from "lucide-react";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { useLoaded } from "../../lib/useLoaded";
import { getDecisionFile } from "../../wire/api";
import { HighlightedCode } from "../../markdown/HighlightedCode";
import { modeName } from "../../session/modes";
import { familyOf, toolName } from "../../session/describe";
import { Diff } from "../../tools/Diff";
import { Button } from "../../ui/Button";
import { Kbd } from "../../ui/Kbd";
import { Loading } from "../../ui/Loading";
import { exactParts, replacesOnce } from "../../session/toolCalls";
import type { Json } from "../../wire/json";
import type { PanelProps } from "./panelProps";
import { DenyForm } from "./DenyForm";
import { editableField, editableText, readEdited } from "../../session/decisions/editInput";
import { inputFields, visible } from "../../session/decisions/inputFields";
import { type Suggestion, suggestionsOf } from "../../session/decisions/rules";
import { keyNames, useDecisionPanel } from "./useDecisionPanel";

export function PermissionPanel({ decision, answer, cwd }: PanelProps & { cwd?: string }) {
  const { t } = useTranslation();
  const { request, state } = decision;
  const [denying, setDenying] = useState(false);
  /** The input as the user wants it, while or after they change it. */
  const [edited, setEdited] = useState<string>();
  const field = editableField(request.input);
  const suggestions = suggestionsOf(request.suggestions);
  const [kept, setKept] = useState<readonly boolean[]>(() => keptAtFirst(suggestions));
  const chosen = suggestions.filter((_, index) => kept[index]);
  const sent = state === "sent";
  const name = toolName(t, request.toolName);

  const changed = edited === undefined ? undefined : readEdited(request.input, field, edited);
  const allow = () => {
    if (edited === undefined) answer({ behavior: "allow" });
    else if (changed) answer({ behavior: "allow", updatedInput: changed });
  };
  const always = () => answer({ behavior: "allow", updatedPermissions: chosen.map(({ raw }) => raw) });
  const edit = () => setEdited(editableText(request.input, field));
  /** The field that goes away had the focus. */
  const back = () => {
    setEdited(undefined);
    setDenying(false);
    ref.current?.focus();
  };
  const asIs = edited === undefined && !denying;
  const { ref, ready, marks } = useDecisionPanel<HTMLDivElement>(
    asIs
      ? { allow, edit, always: chosen.length > 0 ? always : undefined, deny: () => setDenying(true) }
      : edited !== undefined && changed
        ? { allow }
        : {},
    sent,
  );

  return (
    // The panel as a whole takes the focus, so that its keys work; its buttons do the same.
    <div
      ref={ref}
      {...marks}
      role="group"
      tabIndex={0}
      aria-label={t("permission.label", { tool: name })}
      className="outline-none focus-visible:bg-wait-soft/40"
    >
      <div className="flex items-center gap-2 bg-wait-soft px-3 py-2 text-sm">
        <ShieldQuestionMark className="size-4 shrink-0 text-wait" aria-hidden />
        <p className="font-medium" title={name === request.toolName ? undefined : request.toolName}>
          {t("permission.title", { tool: name })}
        </p>
        {request.description && !isShown(request.description, request.input) && (
          <p className="min-w-0 flex-1 break-words text-ink-2">{visible(request.description)}</p>
        )}
      </div>
      {edited === undefined ? (
        <ExactInput decision={decision} />
      ) : (
        <div className="p-2">
          <textarea
            // The user has just asked to change it.
            // oxlint-disable-next-line jsx-a11y/no-autofocus
            autoFocus
            aria-label={t("permission.editLabel")}
            aria-invalid={changed === undefined || undefined}
            value={edited}
            disabled={sent}
            spellCheck={false}
            onChange={(event) => setEdited(event.target.value)}
            onKeyDown={(event) => event.key === "Escape" && back()}
            className="field-sizing-content max-h-80 w-full resize-none rounded-lg border border-line-strong bg-canvas px-3 py-2 font-mono text-xs leading-5 aria-invalid:border-bad"
          />
          {changed === undefined && (
            <p role="alert" className="px-1 pt-1 text-xs text-bad">
              {t("permission.editInvalid")}
            </p>
          )}
        </div>
      )}
      {edited === undefined && suggestions.length > 0 && (
        <Rules suggestions={suggestions} kept={kept} disabled={sent} onKeep={setKept} />
      )}
      <div className="border-t border-line px-3 py-2.5">
        {denying && !sent ? (
          <DenyForm
            label={t("permission.reason")}
            placeholder={t("permission.reasonHint")}
            confirm={t("permission.deny")}
            onDeny={(message) => answer({ behavior: "deny", message })}
            onBack={back}
          />
        ) : (
          <div className="flex flex-wrap items-center gap-2">
            <Button
              variant="primary"
              disabled={sent || (edited !== undefined && !changed)}
              aria-disabled={!ready}
              onClick={() => ready && allow()}
            >
              {edited === undefined ? t("permission.allow") : t("permission.allowEdited")}
              <Kbd>{keyNames.allow}</Kbd>
            </Button>
            {edited === undefined && suggestions.length > 0 && (
              <Button
                disabled={sent || chosen.length === 0}
                aria-disabled={!ready}
                onClick={() => ready && always()}
              >
                {t("permission.always")}
                <Kbd>{keyNames.always}</Kbd>
              </Button>
            )}
            {edited === undefined ? (
              <Button disabled={sent} onClick={edit}>
                {t("permission.edit")}
                <Kbd>{keyNames.edit}</Kbd>
              </Button>
            ) : (
              <Button disabled={sent} onClick={back}>
                {t("permission.asAsked")}
              </Button>
            )}
            <Button variant="danger" disabled={sent} onClick={() => setDenying(true)}>
              {t("permission.denyMore")}
              <Kbd>{keyNames.deny}</Kbd>
            </Button>
            {sent && <span className="text-xs text-ink-3">{t("decision.sent")}</span>}
          </div>
        )}
      </div>
      {cwd && <p className="sr-only">{t("permission.where", { cwd })}</p>}
    </div>
  );
}

/** Whether the input below says the same: the command itself, or the end of a path. */
function isShown(description: string, input: Json): boolean {
  const { command, url, path } = exactParts(input);
  return description === command || description === url || path?.endsWith(`/${description}`) === true;
}

/** All of what would run: never shortened, never folded, nothing left out. */
function ExactInput({ decision }: Pick<PanelProps, "decision">) {
  const { sessionId, requestId, toolName: tool, input, description } = decision.request;
  const { command, path } = exactParts(input);
  if (familyOf(tool) === "bash" && command !== undefined) {
    return (
      <>
        <HighlightedCode
          code={visible(command)}
          language="bash"
          className="px-3 py-2.5 whitespace-pre-wrap"
        />
        <Fields
          input={input}
          shown={description === input.description ? /^(command|description)$/ : /^command$/}
        />
      </>
    );
  }
  if (familyOf(tool) === "edit") {
    return (
      <>
        {path && <p className="px-3 pt-2.5 font-mono text-xs break-all">{visible(path)}</p>}
        <EditInPlace sessionId={sessionId} requestId={requestId} input={input} />
        <Fields input={input} shown={replacesOnce(input) ? inDiffOnce : inDiff} />
      </>
    );
  }
  return <Fields input={input} />;
}

/** How long the difference waits for the file, so that it does not grow under the eyes of the reader. */
const FILE_PATIENCE_MS = 1_000;

/** The change where it would be made: with the file's own numbers and the lines around it. Without the file, by itself. */
function EditInPlace({ sessionId, requestId, input }: { sessionId: string; requestId: string; input: Json }) {
  const [loaded] = useLoaded(`file:${requestId}`, () =>
    Promise.race([
      getDecisionFile(sessionId, requestId),
      new Promise<undefined>((resolve) => {
        setTimeout(resolve, FILE_PATIENCE_MS);
      }),
    ]),
  );
  if (loaded.state === "loading") return <Loading className="px-3 py-2" />;
  return (
    <Diff id={requestId} input={input} file={loaded.state === "ready" ? loaded.value : undefined} whole />
  );
}

/** What the path and the difference above already show. */
const inDiff =
  /^(file_path|notebook_path|old_string|new_string|content|new_source|edits\[\d+\]\.(old_string|new_string))$/;

/** The same for an edit of one place. */
const inDiffOnce = new RegExp(`${inDiff.source}|^replace_all$`);

/** The fields of an input that nothing above has shown. */
function Fields({ input, shown }: { input: Json; shown?: RegExp }) {
  const fields = inputFields(input).filter(({ name }) => !shown?.test(name) && (name !== "" || !shown));
  if (fields.length === 0) return null;
  return (
    <dl className="grid grid-cols-[auto_1fr] gap-x-3 gap-y-1 px-3 py-2.5 font-mono text-xs leading-5">
      {fields.map(({ name, text }) => (
        <div key={name} className="contents">
          <dt className="max-w-56 break-all text-ink-3 max-sm:max-w-32">{name}</dt>
          <dd className="min-w-0 break-words whitespace-pre-wrap">{text}</dd>
        </div>
      ))}
    </dl>
  );
}

const destinations = ["session", "localSettings", "projectSettings", "userSettings"] as const;

/** Rules for calls like this one; what allows more is the user's own choice. */
function keptAtFirst(suggestions: readonly Suggestion[]): boolean[] {
  const anyRule = suggestions.some(({ isRule }) => isRule);
  return suggestions.map(({ isRule }) => isRule || !anyRule);
}

interface RulesProps {
  suggestions: readonly Suggestion[];
  kept: readonly boolean[];
  disabled: boolean;
  onKeep: (kept: readonly boolean[]) => void;
}

function Rules({ suggestions, kept, disabled, onKeep }: RulesProps) {
  const { t } = useTranslation();
  return (
    <fieldset disabled={disabled} className="min-w-0 border-t border-line px-3 py-2 text-xs text-ink-2">
      <legend className="sr-only">{t("permission.ruleHint")}</legend>
      <p aria-hidden>{t("permission.ruleHint")}</p>
      <ul className="mt-1 flex flex-col gap-1">
        {suggestions.map(({ rules }, index) => (
          // oxlint-disable-next-line react/no-array-index-key -- a suggestion has no identity but its place
          <li key={index}>
            <label className="flex items-start gap-2">
              {suggestions.length > 1 && (
                <input
                  type="checkbox"
                  checked={kept[index] ?? false}
                  onChange={(event) => onKeep(kept.with(index, event.target.checked))}
                  className="mt-0.5 size-3.5 shrink-0 accent-accent"
                />
              )}
              <span className="flex min-w-0 flex-col gap-0.5">
                {rules.map((rule) => (
                  <Rule key={rule.text} rule={rule} />
                ))}
              </span>
            </label>
          </li>
        ))}
      </ul>
    </fieldset>
  );
}

function Rule({ rule }: { rule: Suggestion["rules"][number] }) {
  const { t } = useTranslation();
  const known = destinations.find((each) => each === rule.destination);
  return (
    <span className="flex flex-wrap items-center gap-x-2">
      <span className="text-ink-3">{t(`permission.kind.${rule.kind}`)}</span>
      <code className="font-mono break-all text-ink">
        {rule.kind === "mode" ? modeName(t, rule.text) : visible(rule.text)}
      </code>
      {known && <span className="text-ink-3">{t(`permission.destination.${known}`)}</span>}
    </span>
  );
}
