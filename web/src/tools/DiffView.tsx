import { useEffect, useMemo, useState } from "react";
import { useTranslation } from "react-i18next";
import { Fold } from "../ui/Fold";
import { cn } from "../lib/cn";
import { highlight, type TokenLine } from "../markdown/highlight";
import { languageOf } from "../markdown/language";
import type { Json } from "../wire/json";
import { changedWords, type DiffRow, hunksOfInput, rowsOf, sideOf, spansOf, tokensByRow } from "./diff";
import { countChanges, hunksOfResult } from "../session/patch";
import { visible } from "../session/decisions/inputFields";
import { pathOf } from "../session/toolCalls";

const looks: Record<DiffRow["kind"], { row: string; sign: string; changed: string }> = {
  same: { row: "", sign: " ", changed: "" },
  added: { row: "bg-good-soft", sign: "+", changed: "rounded-xs bg-good/20" },
  removed: { row: "bg-bad-soft", sign: "-", changed: "rounded-xs bg-bad/20" },
  gap: { row: "", sign: " ", changed: "" },
};

export interface DiffViewProps {
  id: string;
  input: Json;
  details?: Json;
  /** The file that would be changed: undefined if it is not known, null if there is none. */
  file?: string | null;
  /** Shows every line: what is to be approved is never folded. */
  whole?: boolean;
  /** Lets lines be chosen as context for the next prompt. */
  onLine?: (line: number) => void;
}

const VISIBLE_ROWS = 24;

export default function DiffView({ id, input, details, file, whole = false, onLine }: DiffViewProps) {
  const { t } = useTranslation();
  const { rows, counts } = useMemo(() => {
    const finished = hunksOfResult(details);
    const hunks = finished.length > 0 ? finished : hunksOfInput(input, file);
    const drawn = rowsOf(hunks);
    return {
      // What is to be approved has nothing invisible in it.
      rows: whole ? drawn.map((row) => ({ ...row, text: visible(row.text) })) : drawn,
      counts: countChanges(hunks),
    };
  }, [input, details, file, whole]);
  const keys = useMemo(() => rows.map((_, index) => String(index)), [rows]);
  const words = useMemo(() => changedWords(rows), [rows]);
  const tokens = useColours(rows, languageOf(pathOf(input) ?? ""));

  return (
    <div>
      <p className="flex gap-2 px-3 pt-2 pb-1 font-mono text-2xs">
        {counts.added > 0 && <span className="text-good">{t("diff.added", { count: counts.added })}</span>}
        {counts.removed > 0 && (
          <span className="text-bad">{t("diff.removed", { count: counts.removed })}</span>
        )}
      </p>
      <Fold id={id} lines={keys} visible={whole ? Number.POSITIVE_INFINITY : VISIBLE_ROWS}>
        {(shown) => (
          <DiffTable rows={rows.slice(0, shown.length)} tokens={tokens} words={words} onLine={onLine} />
        )}
      </Fold>
    </div>
  );
}

/** The rows in the colours of their language. Both sides are coloured by themselves, as two files. */
function useColours(rows: readonly DiffRow[], language: string | undefined): (TokenLine | undefined)[] {
  const [coloured, setColoured] = useState<{ rows: readonly DiffRow[]; tokens: (TokenLine | undefined)[] }>();
  useEffect(() => {
    if (!language) return undefined;
    let current = true;
    void Promise.all([
      highlight(sideOf(rows, "old"), language),
      highlight(sideOf(rows, "new"), language),
    ]).then(([old, now]) => {
      if (current && (old || now)) setColoured({ rows, tokens: tokensByRow(rows, old, now) });
    });
    return () => {
      current = false;
    };
  }, [rows, language]);
  return coloured?.rows === rows ? coloured.tokens : [];
}

interface DiffTableProps {
  rows: readonly DiffRow[];
  tokens: readonly (TokenLine | undefined)[];
  words: ReturnType<typeof changedWords>;
  onLine?: (line: number) => void;
}

function DiffTable({ rows, tokens, words, onLine }: DiffTableProps) {
  const { t } = useTranslation();
  // A new file has no old lines to number, and an edit whose place is not known has no numbers at all.
  const hasOld = rows.some((row) => row.oldLine !== undefined);
  const hasNew = rows.some((row) => row.newLine !== undefined);
  return (
    <div tabIndex={0} className="overflow-x-auto pb-2">
      <table aria-label={t("diff.label")} className="min-w-full border-collapse font-mono text-xs leading-5">
        <tbody>
          {rows.map((row, index) => (
            // oxlint-disable-next-line react/no-array-index-key -- lines have no identity but their place
            <tr key={index} className={cn("h-5", looks[row.kind].row)}>
              {row.kind === "gap" ? (
                <td colSpan={4} className="h-5 border-y border-line bg-hover text-center text-2xs text-ink-3">
                  ⋯
                </td>
              ) : (
                <>
                  {hasOld && <LineNumber value={row.oldLine} />}
                  {hasNew && <LineNumber value={row.newLine} onLine={onLine} />}
                  <td
                    className={cn(
                      "w-5 min-w-5 text-center select-none",
                      row.kind === "added" ? "text-good" : "text-bad",
                    )}
                  >
                    {looks[row.kind].sign}
                  </td>
                  <td className="pr-3 whitespace-pre">
                    {spansOf(row.text, tokens[index], words.get(index) ?? []).map((span, place) => (
                      <span
                        // oxlint-disable-next-line react/no-array-index-key -- spans have no identity but their place
                        key={place}
                        style={span.color === "inherit" ? undefined : { color: span.color }}
                        className={span.changed ? looks[row.kind].changed : undefined}
                      >
                        {span.text}
                      </span>
                    ))}
                  </td>
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
