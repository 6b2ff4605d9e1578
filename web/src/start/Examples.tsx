import { useTranslation } from "react-i18next";

const examples = ["explain", "tests", "bug"] as const;

/** Tasks that fill the field, for those who want to see before they think. */
export function Examples({ onPick }: { onPick: (prompt: string) => void }) {
  const { t } = useTranslation();
  return (
    <div role="group" aria-label={t("start.examples.label")} className="mt-5 flex flex-wrap gap-2">
      {examples.map((name) => (
        <button
          key={name}
          type="button"
          onClick={() => onPick(t(`start.examples.${name}.prompt`))}
          className="rounded-full border border-line px-3 py-1 text-sm text-ink-2 transition-colors hover:bg-hover hover:text-ink"
        >
          {t(`start.examples.${name}.title`)}
        </button>
      ))}
    </div>
  );
}
