import { MessageCircleQuestionMark } from "lucide-react";
import { type ReactNode, useId, useState } from "react";
import { useTranslation } from "react-i18next";
import { cn } from "../../lib/cn";
import { Button } from "../../ui/Button";
import { Kbd } from "../../ui/Kbd";
import type { PanelProps } from "./panelProps";
import { keyNames, useDecisionPanel } from "./useDecisionPanel";
import {
  answeredInput,
  type Choice,
  noChoice,
  parseQuestions,
  type Question,
  toggleLabel,
  toggleOther,
} from "../../session/decisions/questions";

export function QuestionPanel({ decision, answer }: PanelProps) {
  const { t } = useTranslation();
  const { input } = decision.request;
  const questions = parseQuestions(input);
  const [choices, setChoices] = useState<readonly Choice[]>(() => questions.map(() => noChoice));
  const answered = answeredInput(input, choices);
  const sent = decision.state === "sent";
  const confirm = () => answered && answer({ behavior: "allow", updatedInput: answered });
  const cancel = () => answer({ behavior: "deny", message: t("question.cancelled") });
  /** Of the first question without an answer; once all have one, of the last. */
  const choose = (number: number) => {
    const open = choices.findIndex(({ labels, other }) => labels.length === 0 && !other);
    const index = open === -1 ? questions.length - 1 : open;
    const question = questions[index];
    const option = question?.options[number - 1];
    if (!question || !option) return;
    setChoices(
      choices.with(index, toggleLabel(choices[index] ?? noChoice, option.label, question.multiSelect)),
    );
  };
  const { ref, ready, marks } = useDecisionPanel<HTMLFormElement>(
    { allow: answered && confirm, deny: cancel, choose },
    sent,
  );

  return (
    <form
      ref={ref}
      {...marks}
      tabIndex={-1}
      aria-label={t("question.label")}
      className="outline-none focus-visible:bg-ask-soft/40"
      onSubmit={(event) => {
        event.preventDefault();
        if (ready) confirm();
      }}
    >
      <div className="flex items-center gap-2 bg-ask-soft px-3 py-2 text-sm font-medium">
        <MessageCircleQuestionMark className="size-4 shrink-0 text-ask" aria-hidden />
        {t("question.title", { count: questions.length })}
      </div>
      <div className="flex flex-col gap-4 px-3 py-3">
        {questions.map((question, index) => (
          <QuestionField
            key={question.question}
            question={question}
            choice={choices[index] ?? noChoice}
            disabled={sent}
            onChange={(choice) => setChoices(choices.with(index, choice))}
          />
        ))}
      </div>
      <div className="flex flex-wrap items-center gap-2 border-t border-line px-3 py-2.5">
        <Button type="submit" variant="primary" disabled={sent || !answered} aria-disabled={!ready}>
          {t("question.confirm")}
          <Kbd>{keyNames.allow}</Kbd>
        </Button>
        <Button disabled={sent} onClick={cancel}>
          {t("common.cancel")}
          <Kbd>{keyNames.deny}</Kbd>
        </Button>
        {sent && <span className="text-xs text-ink-3">{t("decision.sent")}</span>}
      </div>
    </form>
  );
}

interface QuestionFieldProps {
  question: Question;
  choice: Choice;
  disabled: boolean;
  onChange: (choice: Choice) => void;
}

function QuestionField({ question, choice, disabled, onChange }: QuestionFieldProps) {
  const { t } = useTranslation();
  const name = useId();
  const { multiSelect } = question;
  return (
    <fieldset disabled={disabled} className="min-w-0">
      <legend className="mb-2 text-sm">
        {question.header && (
          <span className="mr-2 rounded bg-accent-soft px-1.5 py-0.5 text-xs font-medium text-accent">
            {question.header}
          </span>
        )}
        <span className="font-medium">{question.question}</span>
        {multiSelect && (
          <span className="ml-2 text-xs whitespace-nowrap text-ink-3">{t("question.several")}</span>
        )}
      </legend>
      <div className="flex flex-col gap-1.5">
        {question.options.map((option, index) => (
          <Option
            key={option.label}
            name={name}
            multiSelect={multiSelect}
            checked={choice.labels.includes(option.label)}
            onToggle={() => onChange(toggleLabel(choice, option.label, multiSelect))}
          >
            <span className="font-medium">{option.label}</span>
            {index < 9 && <Kbd className="ml-2">{String(index + 1)}</Kbd>}
            {option.description && <span className="block text-xs text-ink-2">{option.description}</span>}
          </Option>
        ))}
        <Option
          name={name}
          multiSelect={multiSelect}
          checked={choice.other}
          onToggle={() => onChange(toggleOther(choice, multiSelect))}
        >
          <span className="font-medium">{t("question.other")}</span>
        </Option>
        {choice.other && (
          <textarea
            // The user has just chosen to answer in their own words.
            // oxlint-disable-next-line jsx-a11y/no-autofocus
            autoFocus
            rows={2}
            aria-label={t("question.otherLabel")}
            placeholder={t("question.otherHint")}
            value={choice.text}
            onChange={(event) => onChange({ ...choice, text: event.target.value })}
            className="field-sizing-content min-h-9 resize-none rounded-lg border border-line-strong bg-canvas px-3 py-2 text-sm"
          />
        )}
      </div>
    </fieldset>
  );
}

interface OptionProps {
  name: string;
  multiSelect: boolean;
  checked: boolean;
  onToggle: () => void;
  children: ReactNode;
}

function Option({ name, multiSelect, checked, onToggle, children }: OptionProps) {
  return (
    <label
      className={cn(
        "flex items-start gap-2.5 rounded-lg border px-3 py-2 text-sm transition-colors",
        checked ? "border-accent bg-accent-soft" : "border-line hover:bg-hover",
      )}
    >
      <input
        type={multiSelect ? "checkbox" : "radio"}
        name={name}
        checked={checked}
        onChange={onToggle}
        className="mt-[3px] size-3.5 shrink-0 accent-accent"
      />
      <span className="min-w-0">{children}</span>
    </label>
  );
}
