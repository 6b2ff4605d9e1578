import { useState } from "react";
import { useTranslation } from "react-i18next";
import type { SessionInfo } from "../../gen/events";
import { cn } from "../../lib/cn";
import { formatCost } from "../../lib/format";
import { configureSession } from "../../store/controller";
import { Button } from "../../ui/Button";

/** The most that a session may cost. The agent itself stops when it is reached. */
export function Budget({ session, spent }: { session: SessionInfo; spent: number | undefined }) {
  const { t, i18n } = useTranslation();
  const budget = session.settings.maxBudgetUsd;
  const [editing, setEditing] = useState(false);
  const share = budget ? Math.min(1, (spent ?? 0) / budget) : 0;
  if (editing) return <BudgetForm session={session} budget={budget} onDone={() => setEditing(false)} />;
  return (
    <div className="mt-2.5">
      {budget !== undefined && (
        <div className="mb-1.5 h-1.5 overflow-hidden rounded-full bg-active" aria-hidden>
          <div
            className={cn(
              "h-full rounded-full",
              share > 0.9 ? "bg-bad" : share > 0.7 ? "bg-wait" : "bg-good",
            )}
            style={{ width: `${share * 100}%` }}
          />
        </div>
      )}
      <button
        type="button"
        onClick={() => setEditing(true)}
        className="-mx-1 rounded px-1 text-xs font-medium text-accent hover:underline pointer-coarse:py-2"
      >
        {budget === undefined
          ? t("panel.setBudget")
          : t("panel.budget", { amount: formatCost(budget, i18n.language) })}
      </button>
    </div>
  );
}

function BudgetForm({
  session,
  budget,
  onDone,
}: {
  session: SessionInfo;
  budget: number | undefined;
  onDone: () => void;
}) {
  const { t } = useTranslation();
  const [text, setText] = useState(budget?.toString() ?? "");
  const amount = text.trim() === "" ? null : Number(text);
  const valid = amount === null || (Number.isFinite(amount) && amount > 0);
  return (
    <form
      className="mt-2.5 flex items-center gap-1.5"
      onSubmit={(event) => {
        event.preventDefault();
        if (!valid) return;
        configureSession(session.id, { maxBudgetUsd: amount });
        onDone();
      }}
    >
      <input
        // The user has just asked for this field.
        // oxlint-disable-next-line jsx-a11y/no-autofocus
        autoFocus
        inputMode="decimal"
        aria-label={t("panel.budgetLabel")}
        placeholder={t("panel.budgetHint")}
        value={text}
        onChange={(event) => setText(event.target.value)}
        onKeyDown={(event) => event.key === "Escape" && onDone()}
        aria-invalid={!valid || undefined}
        className="h-7 min-w-0 flex-1 rounded-md border border-line-strong bg-canvas px-2 text-sm aria-invalid:border-bad"
      />
      <Button size="sm" type="submit" disabled={!valid}>
        {t("common.save")}
      </Button>
    </form>
  );
}
