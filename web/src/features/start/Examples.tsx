import { useTranslation } from "react-i18next";

export const exampleNames = [
  "explain",
  "tests",
  "bug",
  "review",
  "document",
  "refactor",
  "dependencies",
  "performance",
] as const;

/** Those that fit beside the field; the rest has a page of its own. */
const FEW = 3;

/** Tasks that fill the field, for those who want to see before they think. */
export function Examples({ onPick }: { onPick: (prompt: string) => void }) {
  const { t } = useTranslation();
  return (
    <div
      role="group"
      aria-label={t("start.examples.label")}
      className="mt-5 flex flex-wrap items-center gap-2"
    >
      {exampleNames.slice(0, FEW).map((name) => (
        <button
          key={name}
          type="button"
          onClick={() => onPick(t(`start.examples.${name}.prompt`))}
          className="rounded-full border border-line px-3 py-1 text-sm text-ink-2 transition-colors hover:bg-hover hover:text-ink pointer-coarse:py-2"
        >
          {t(`start.examples.${name}.title`)}
        </button>
      ))}
      <a href="#/examples" className="px-2 text-sm text-accent hover:underline">
        {t("start.examples.more")}
      </a>
    </div>
  );
}
