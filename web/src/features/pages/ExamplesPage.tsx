import { ArrowRight } from "lucide-react";
import { useTranslation } from "react-i18next";
import { exampleNames } from "../start/Examples";
import { beginAfresh } from "../start/afresh";
import { Page } from "../../ui/Page";

/** Tasks to begin with. Choosing one fills the field; nothing is sent before the user does. */
export function ExamplesPage() {
  const { t } = useTranslation();
  return (
    <Page page="examples">
      <ul className="grid gap-3 sm:grid-cols-2">
        {exampleNames.map((name) => (
          <li key={name}>
            <button
              type="button"
              onClick={() => beginAfresh(t(`start.examples.${name}.prompt`))}
              className="group flex h-full w-full flex-col rounded-xl border border-line bg-raised px-4 py-3.5 text-left shadow-card transition-colors hover:border-line-strong hover:bg-hover"
            >
              <span className="flex w-full items-center justify-between gap-2 text-sm font-medium">
                {t(`start.examples.${name}.title`)}
                <ArrowRight
                  className="size-4 text-ink-3 transition-transform group-hover:translate-x-0.5"
                  aria-hidden
                />
              </span>
              <span className="mt-1 text-sm text-ink-2">{t(`start.examples.${name}.prompt`)}</span>
            </button>
          </li>
        ))}
      </ul>
    </Page>
  );
}
