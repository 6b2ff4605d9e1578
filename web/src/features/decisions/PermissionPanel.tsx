import { ShieldQuestionMark } from "lucide-react";
import { type KeyboardEvent, useState } from "react";
import { useTranslation } from "react-i18next";
import { HighlightedCode } from "../../markdown/HighlightedCode";
import { modeName } from "../../session/modes";
import { familyOf } from "../../session/describe";
import { Diff } from "../../tools/Diff";
import { Button } from "../../ui/Button";
import { Kbd } from "../../ui/Kbd";
import { exactParts } from "../../session/toolCalls";
import type { PanelProps } from "./panelProps";
import { DenyForm } from "./DenyForm";
import { editableField, editableText, readEdited } from "../../session/decisions/editInput";
import { describeSuggestions, type SuggestedRule } from "../../session/decisions/rules";
import { useFocusWhenFree } from "./useFocusWhenFree";

export function PermissionPanel({ decision, answer, cwd }: PanelProps & { cwd?: string }) {
  const { t } = useTranslation();
  const { request, state } = decision;
  const [denying, setDenying] = useState(false);
  /** The input as the user wants it, while or after they change it. */
  const [edited, setEdited] = useState<string>();
  const field = editableField(request.input);
  const rules = describeSuggestions(request.suggestions);
  const panel = useFocusWhenFree<HTMLDivElement>();
  const sent = state === "sent";

  const changed = edited === undefined ? undefined : readEdited(request.input, field, edited);
  const allow = () => {
    if (edited === undefined) answer({ behavior: "allow" });
    else if (changed) answer({ behavior: "allow", updatedInput: changed });
  };
  const always = () => answer({ behavior: "allow", updatedPermissions: request.suggestions });

  function onKeyDown(event: KeyboardEvent): void {
    if (sent || denying || edited !== undefined || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "y") allow();
    else if (event.key === "a" && rules.length > 0) always();
    else if (event.key === "e") setEdited(editableText(request.input, field));
    else if (event.key === "n") setDenying(true);
    else return;
    event.preventDefault();
  }

  return (
    // The keys y, a and n belong to the panel as a whole: it takes the focus, and its buttons do the same.
    // oxlint-disable-next-line jsx-a11y/no-noninteractive-element-interactions
    <div
      ref={panel}
      role="group"
      tabIndex={0}
      aria-label={t("permission.label", { tool: request.toolName })}
      onKeyDown={onKeyDown}
      className="outline-none focus-visible:bg-wait-soft/40"
    >
      <div className="flex items-center gap-2 bg-wait-soft px-3 py-2 text-sm">
        <ShieldQuestionMark className="size-4 shrink-0 text-wait" aria-hidden />
        <p className="font-medium">{t("permission.title", { tool: request.toolName })}</p>
        {request.description && <p className="min-w-0 flex-1 truncate text-ink-2">{request.description}</p>}
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
            onKeyDown={(event) => event.key === "Escape" && setEdited(undefined)}
            className="field-sizing-content max-h-80 w-full resize-none rounded-lg border border-line-strong bg-canvas px-3 py-2 font-mono text-xs leading-5 aria-invalid:border-bad"
          />
          {changed === undefined && (
            <p role="alert" className="px-1 pt-1 text-xs text-bad">
              {t("permission.editInvalid")}
            </p>
          )}
        </div>
      )}
      {edited === undefined && rules.length > 0 && <Rules rules={rules} />}
      <div className="border-t border-line px-3 py-2.5">
        {denying && !sent ? (
          <DenyForm
            label={t("permission.reason")}
            placeholder={t("permission.reasonHint")}
            confirm={t("permission.deny")}
            onDeny={(message) => answer({ behavior: "deny", message })}
            onBack={() => setDenying(false)}
          />
        ) : (
          <div className="flex flex-wrap items-center gap-2">
            <Button variant="primary" disabled={sent || (edited !== undefined && !changed)} onClick={allow}>
              {edited === undefined ? t("permission.allow") : t("permission.allowEdited")}
              {edited === undefined && <Kbd>Y</Kbd>}
            </Button>
            {edited === undefined && rules.length > 0 && (
              <Button disabled={sent} onClick={always}>
                {t("permission.always")}
                <Kbd>A</Kbd>
              </Button>
            )}
            {edited === undefined ? (
              <Button disabled={sent} onClick={() => setEdited(editableText(request.input, field))}>
                {t("permission.edit")}
                <Kbd>E</Kbd>
              </Button>
            ) : (
              <Button disabled={sent} onClick={() => setEdited(undefined)}>
                {t("permission.asAsked")}
              </Button>
            )}
            <Button variant="danger" disabled={sent} onClick={() => setDenying(true)}>
              {t("permission.denyMore")}
              <Kbd>N</Kbd>
            </Button>
            {sent && <span className="text-xs text-ink-3">{t("decision.sent")}</span>}
          </div>
        )}
      </div>
      {cwd && <p className="sr-only">{t("permission.where", { cwd })}</p>}
    </div>
  );
}

/** All of what would run: never shortened, never folded. */
function ExactInput({ decision }: Pick<PanelProps, "decision">) {
  const { requestId, toolName, input } = decision.request;
  const { command, url, path } = exactParts(input);
  if (familyOf(toolName) === "bash" && command !== undefined) {
    return <HighlightedCode code={command} language="bash" className="px-3 py-2.5 whitespace-pre-wrap" />;
  }
  if (familyOf(toolName) === "edit") {
    return (
      <>
        {path && <p className="px-3 pt-2.5 font-mono text-xs break-all">{path}</p>}
        <Diff id={requestId} input={input} whole />
      </>
    );
  }
  return (
    <>
      {url && <p className="px-3 pt-2.5 font-mono text-xs break-all">{url}</p>}
      <HighlightedCode
        code={JSON.stringify(input, null, 2)}
        language="json"
        className="px-3 py-2.5 whitespace-pre-wrap"
      />
    </>
  );
}

const destinations = ["session", "localSettings", "projectSettings", "userSettings"] as const;

function Rules({ rules }: { rules: readonly SuggestedRule[] }) {
  const { t } = useTranslation();
  return (
    <div className="border-t border-line px-3 py-2 text-xs text-ink-2">
      <p>{t("permission.ruleHint")}</p>
      <ul className="mt-1 flex flex-col gap-1">
        {rules.map((rule) => {
          const known = destinations.find((each) => each === rule.destination);
          return (
            <li key={rule.text} className="flex flex-wrap items-center gap-x-2">
              <span className="text-ink-3">{t(`permission.kind.${rule.kind}`)}</span>
              <code className="font-mono break-all text-ink">
                {rule.kind === "mode" ? modeName(t, rule.text) : rule.text}
              </code>
              {known && <span className="text-ink-3">{t(`permission.destination.${known}`)}</span>}
            </li>
          );
        })}
      </ul>
    </div>
  );
}
