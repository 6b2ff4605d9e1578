import { useMemo } from "react";
import { useTranslation } from "react-i18next";
import { Fold } from "../ui/Fold";
import { cn } from "../lib/cn";
import type { Json } from "../wire/json";
import { type DiffRow, hunksOfInput, rowsOf } from "./diff";
import { countChanges, hunksOfResult } from "../session/patch";
import { visible } from "../session/decisions/inputFields";

const looks: Record<DiffRow["kind"], { row: string; sign: string }> = {
  same: { row: "", sign: " " },
  added: { row: "bg-good-soft", sign: "+" },
  removed: { row: "bg-bad-soft", sign: "-" },
  gap: { row: "", sign: " " },
};

export interface DiffViewProps {
  id: string;
  input: Json;
  details?: Json;
  /** Shows every line: what is to be approved is never folded. */
  whole?: boolean;
  /** Lets lines be chosen as context for the next prompt. */
  onLine?: (line: number) => void;
}

const VISIBLE_ROWS = 24;

export default function DiffView({ id, input, details, whole = false, onLine }: DiffViewProps) {
  const { t } = useTranslation();
  const { rows, counts } = useMemo(() => {
    const finished = hunksOfResult(details);
    const hunks = finished.length > 0 ? finished : hunksOfInput(input);
    const drawn = rowsOf(hunks);
    return {
      // What is to be approved has nothing invisible in it.
      rows: whole ? drawn.map((row) => ({ ...row, text: visible(row.text) })) : drawn,
      counts: countChanges(hunks),
    };
  }, [input, details, whole]);
  const keys = useMemo(() => rows.map((_, index) => String(index)), [rows]);

  return (
    <div>
      <p className="flex gap-2 px-3 pt-2 pb-1 font-mono text-2xs">
        {counts.added > 0 && <span className="text-good">{t("diff.added", { count: counts.added })}</span>}
        {counts.removed > 0 && (
          <span className="text-bad">{t("diff.removed", { count: counts.removed })}</span>
        )}
      </p>
      <Fold id={id} lines={keys} visible={whole ? Number.POSITIVE_INFINITY : VISIBLE_ROWS}>
        {(shown) => <DiffTable rows={rows.slice(0, shown.length)} onLine={onLine} />}
      </Fold>
    </div>
  );
}

function DiffTable({ rows, onLine }: { rows: readonly DiffRow[]; onLine?: (line: number) => void }) {
  const { t } = useTranslation();
  // A new file has no old lines to number.
  const hasOld = rows.some((row) => row.oldLine !== undefined);
  return (
    <div tabIndex={0} className="overflow-x-auto pb-2">
      <table aria-label={t("diff.label")} className="min-w-full border-collapse font-mono text-xs leading-5">
        <tbody>
          {rows.map((row, index) => (
            // oxlint-disable-next-line react/no-array-index-key -- lines have no identity but their place
            <tr key={index} className={looks[row.kind].row}>
              {row.kind === "gap" ? (
                <td colSpan={4} className="h-5 border-y border-line bg-hover" />
              ) : (
                <>
                  {hasOld && <LineNumber value={row.oldLine} />}
                  <LineNumber value={row.newLine} onLine={onLine} />
                  <td
                    className={cn(
                      "w-4 text-center select-none",
                      row.kind === "added" ? "text-good" : "text-bad",
                    )}
                  >
                    {looks[row.kind].sign}
                  </td>
                  <td className="pr-3 whitespace-pre">{row.text}</td>
                </>
              )}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function LineNumber({ value, onLine }: { value: number | undefined; onLine?: (line: number) => void }) {
  const { t } = useTranslation();
  return (
    <td className="w-px min-w-9 pr-2 pl-2 text-right text-2xs text-ink-3 tabular-nums select-none">
      {onLine && value !== undefined ? (
        <button
          type="button"
          tabIndex={-1}
          aria-label={t("diff.mention", { line: value })}
          onClick={() => onLine(value)}
          className="rounded px-0.5 hover:bg-accent-soft hover:text-accent"
        >
          {value}
        </button>
      ) : (
        value
      )}
    </td>
  );
}
