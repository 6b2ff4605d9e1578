import { type ReactNode } from "react";
import { useTranslation } from "react-i18next";
import { cn } from "../../lib/cn";
import { viewHref } from "./address";

/** The name of the page, and the way between its two sides. */
export function Header({ current, children }: { current: "list" | "usage"; children?: ReactNode }) {
  const { t } = useTranslation();
  const tab = (view: "list" | "usage") => (
    <a
      href={viewHref(view === "list" ? { view, filters: {} } : { view })}
      aria-current={current === view ? "page" : undefined}
      className={cn(
        "flex h-7.5 items-center rounded-md px-3 text-sm font-medium transition-colors pointer-coarse:h-10",
        current === view ? "bg-raised text-ink shadow-card" : "text-ink-2 hover:text-ink",
      )}
    >
      {t(`history.tab.${view}`)}
    </a>
  );
  return (
    <div className="flex shrink-0 flex-wrap items-center gap-x-4 gap-y-2 px-4 pt-4 pb-3 sm:px-6">
      <h1 className="text-xl font-semibold tracking-tight">{t("place.history.name")}</h1>
      <nav aria-label={t("place.history.name")} className="flex gap-0.5 rounded-lg bg-active p-0.5">
        {tab("list")}
        {tab("usage")}
      </nav>
      <span className="flex-1" />
      {children}
    </div>
  );
}
