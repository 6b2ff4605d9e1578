import { CircleDollarSign } from "lucide-react";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import type { SessionInfo } from "../../gen/events";
import { formatCost } from "../../lib/format";
import { configureSession, continueSession } from "../../store/controller";
import { Button } from "../../ui/Button";

/** Whether the session has spent what it may. */
export const isBudgetSpent = ({ settings, summary }: SessionInfo): boolean =>
  settings.maxBudgetUsd !== undefined && (summary?.costUsd ?? 0) >= settings.maxBudgetUsd;

/** A budget that leaves as much again as the session had, in whole cents. */
function proposal(budget: number, spent: number): number {
  return Math.ceil((Math.max(budget, spent) + budget) * 100) / 100;
}

/** Gives the session more to spend. `goOn`: and has the agent go on where it stopped. */
export function RaiseBudget({ session, goOn = false }: { session: SessionInfo; goOn?: boolean }) {
  const { t, i18n } = useTranslation();
  const budget = session.settings.maxBudgetUsd ?? 0;
  const spent = session.summary?.costUsd ?? 0;
  const [text, setText] = useState<string>();
  const amount = Number(text);
  const valid = text !== undefined && Number.isFinite(amount) && amount > spent;
  if (text === undefined) {
    return (
      <span className="flex flex-wrap items-center gap-x-3 gap-y-1">
        <Button size="sm" onClick={() => setText(String(proposal(budget, spent)))}>
          <CircleDollarSign className="size-3.5" aria-hidden />
          {t("budget.raise")}
        </Button>
        <span className="text-xs">
          {t("budget.spent", {
            spent: formatCost(spent, i18n.language),
            budget: formatCost(budget, i18n.language),
          })}
        </span>
      </span>
    );
  }
  return (
    <form
      className="flex flex-wrap items-center gap-1.5 text-ink"
      onSubmit={(event) => {
        event.preventDefault();
        if (!valid) return;
        configureSession(session.id, { maxBudgetUsd: amount });
        if (goOn) continueSession(session.id, t("budget.goOn"));
        setText(undefined);
      }}
    >
      <input
        // The user has just asked for this field.
        // oxlint-disable-next-line jsx-a11y/no-autofocus
        autoFocus
        inputMode="decimal"
        aria-label={t("panel.budgetLabel")}
        value={text}
        onChange={(event) => setText(event.target.value)}
        onKeyDown={(event) => event.key === "Escape" && setText(undefined)}
        aria-invalid={!valid || undefined}
        className="h-7 w-24 rounded-md border border-line-strong bg-canvas px-2 text-sm aria-invalid:border-bad"
      />
      <Button size="sm" variant="primary" type="submit" disabled={!valid}>
        {goOn ? t("budget.raiseAndGoOn") : t("budget.raise")}
      </Button>
      {!valid && (
        <span className="text-xs text-bad">
          {t("budget.more", { spent: formatCost(spent, i18n.language) })}
        </span>
      )}
    </form>
  );
}
