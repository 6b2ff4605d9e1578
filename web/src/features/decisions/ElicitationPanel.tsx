import { ClipboardPen } from "lucide-react";
import { useId, useState } from "react";
import { useTranslation } from "react-i18next";
import { safeLink } from "../../markdown/links";
import { Button } from "../../ui/Button";
import { Kbd } from "../../ui/Kbd";
import type { PanelProps } from "./panelProps";
import { keyNames, useDecisionPanel } from "./useDecisionPanel";
import {
  elicitationOf,
  contentOf,
  type Field,
  parseFields,
  type Value,
  type Values,
} from "../../session/decisions/elicitation";

const inputClass = "h-9 w-full rounded-lg border border-line-strong bg-canvas px-3 text-sm";

/** What an MCP server wants to know from the user: a form, or a page to open. */
export function ElicitationPanel({ decision, answer }: PanelProps) {
  const { t } = useTranslation();
  const { input } = decision.request;
  const fields = parseFields(input.requestedSchema);
  const [values, setValues] = useState<Values>({});
  const content = contentOf(fields, values);
  const { server, message, url: address } = elicitationOf(input);
  const url = safeLink(address);
  const sent = decision.state === "sent";
  const confirm = () => content && answer({ behavior: "allow", updatedInput: content });
  const decline = () => answer({ behavior: "deny" });
  const { ref, ready, marks } = useDecisionPanel<HTMLFormElement>(
    { allow: content && confirm, deny: decline },
    sent,
  );
  return (
    <form
      ref={ref}
      {...marks}
      tabIndex={-1}
      aria-label={t("elicitation.label", { server })}
      className="outline-none focus-visible:bg-ask-soft/40"
      onSubmit={(event) => {
        event.preventDefault();
        if (ready) confirm();
      }}
    >
      <div className="flex items-center gap-2 bg-ask-soft px-3 py-2 text-sm font-medium">
        <ClipboardPen className="size-4 shrink-0 text-ask" aria-hidden />
        {t("elicitation.title", { server })}
      </div>
      <div className="flex flex-col gap-3 px-3 py-3">
        {message && <p className="text-sm whitespace-pre-wrap">{message}</p>}
        {url && (
          <a
            href={url}
            target="_blank"
            rel="noopener noreferrer"
            className="font-mono text-xs break-all text-accent underline"
          >
            {url}
          </a>
        )}
        {fields.map((field) => (
          <FieldInput
            key={field.name}
            field={field}
            value={values[field.name] ?? field.initial}
            disabled={sent}
            onChange={(value) => setValues({ ...values, [field.name]: value })}
          />
        ))}
      </div>
      <div className="flex flex-wrap items-center gap-2 border-t border-line px-3 py-2.5">
        <Button type="submit" variant="primary" disabled={sent || !content} aria-disabled={!ready}>
          {t("question.confirm")}
          <Kbd>{keyNames.allow}</Kbd>
        </Button>
        <Button disabled={sent} onClick={decline}>
          {t("elicitation.decline")}
          <Kbd>{keyNames.deny}</Kbd>
        </Button>
        {sent && <span className="text-xs text-ink-3">{t("decision.sent")}</span>}
      </div>
    </form>
  );
}

interface FieldInputProps {
  field: Field;
  value: Value;
  disabled: boolean;
  onChange: (value: Value) => void;
}

/** How a text of a certain format is typed in. */
const inputTypes: Readonly<Record<string, string>> = {
  email: "email",
  uri: "url",
  date: "date",
  "date-time": "datetime-local",
};

function FieldInput({ field, value, disabled, onChange }: FieldInputProps) {
  const { t } = useTranslation();
  const id = useId();
  const hint = field.description && (
    <p id={`${id}-hint`} className="mt-0.5 text-xs text-ink-3">
      {field.description}
    </p>
  );
  if (field.kind === "boolean") {
    return (
      <div>
        <label className="flex items-center gap-2 text-sm">
          <input
            type="checkbox"
            checked={value === true}
            disabled={disabled}
            onChange={(event) => onChange(event.target.checked)}
            className="size-3.5 accent-accent"
          />
          {field.label}
        </label>
        {hint}
      </div>
    );
  }
  if (field.kind === "choices") {
    const chosen = Array.isArray(value) ? (value as readonly string[]) : [];
    return (
      <fieldset disabled={disabled}>
        <legend className="mb-1 text-sm font-medium">{field.label}</legend>
        <div className="flex flex-wrap gap-x-4 gap-y-1.5">
          {field.options.map((option) => (
            <label key={option.value} className="flex items-center gap-2 text-sm">
              <input
                type="checkbox"
                checked={chosen.includes(option.value)}
                onChange={(event) =>
                  onChange(
                    field.options
                      .map((each) => each.value)
                      .filter((each) =>
                        each === option.value ? event.target.checked : chosen.includes(each),
                      ),
                  )
                }
                className="size-3.5 accent-accent"
              />
              {option.label}
            </label>
          ))}
        </div>
        {hint}
      </fieldset>
    );
  }
  const common = {
    id,
    disabled,
    required: field.required,
    value: String(value),
    "aria-describedby": field.description ? `${id}-hint` : undefined,
    className: inputClass,
  };
  return (
    <div>
      <label htmlFor={id} className="mb-1 block text-sm font-medium">
        {field.label}
        {!field.required && (
          <span className="ml-1.5 text-xs font-normal text-ink-3">{t("elicitation.optional")}</span>
        )}
      </label>
      {field.kind === "choice" ? (
        <select {...common} onChange={(event) => onChange(event.target.value)}>
          <option value="">{t("elicitation.choose")}</option>
          {field.options.map((option) => (
            <option key={option.value} value={option.value}>
              {option.label}
            </option>
          ))}
        </select>
      ) : (
        <input
          {...common}
          type={field.kind === "text" ? (inputTypes[field.format ?? ""] ?? "text") : "number"}
          step={field.kind === "integer" ? 1 : "any"}
          min={field.minimum}
          max={field.maximum}
          onChange={(event) => onChange(event.target.value)}
        />
      )}
      {hint}
    </div>
  );
}
