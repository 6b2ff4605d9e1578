import { RefreshCw } from "lucide-react";
import type { ReactNode } from "react";
import { useTranslation } from "react-i18next";
import type { Loaded } from "../lib/useLoaded";
import type { PageName } from "../store/route";
import { Button } from "./Button";

interface PageProps {
  page: PageName;
  /** What can be done with the page as a whole. */
  actions?: ReactNode;
  children: ReactNode;
}

/** A page that belongs to no session: a title, a sentence that says what it is for, and its content. */
export function Page({ page, actions, children }: PageProps) {
  const { t } = useTranslation();
  return (
    <div className="min-h-0 flex-1 overflow-y-auto" tabIndex={-1}>
      <div className="mx-auto w-full max-w-4xl px-4 pt-7 pb-16 sm:px-8">
        <div className="flex flex-wrap items-start gap-x-6 gap-y-3">
          <div className="min-w-0 flex-1 basis-72">
            <h1 className="text-xl font-semibold tracking-tight">{t(`place.${page}.name`)}</h1>
            <p className="mt-1 max-w-prose text-sm text-ink-2">{t(`place.${page}.hint`)}</p>
          </div>
          {actions}
        </div>
        <div className="mt-6">{children}</div>
      </div>
    </div>
  );
}

/** Content that has to be fetched, in each of its states. */
export function Fetched<T>({
  loaded,
  onRetry,
  children,
}: {
  loaded: Loaded<T>;
  onRetry: () => void;
  children: (value: T) => ReactNode;
}) {
  const { t } = useTranslation();
  if (loaded.state === "loading") {
    return (
      <div role="status" aria-label={t("common.loading")} className="flex flex-col gap-3 py-2">
        {["w-2/3", "w-full", "w-5/6"].map((width) => (
          <span key={width} className={`h-4 animate-breathe rounded bg-active ${width}`} />
        ))}
      </div>
    );
  }
  if (loaded.state === "failed") {
    return (
      <div
        role="alert"
        className="flex flex-wrap items-center gap-3 rounded-lg bg-bad-soft px-4 py-3 text-sm text-bad"
      >
        <p className="min-w-0 flex-1">{loaded.message}</p>
        <Button size="sm" onClick={onRetry}>
          <RefreshCw className="size-3.5" aria-hidden />
          {t("common.retry")}
        </Button>
      </div>
    );
  }
  return children(loaded.value);
}

/** Nothing is there, and what to do about it. */
export function Empty({ title, children }: { title: string; children?: ReactNode }) {
  return (
    <div className="rounded-xl border border-dashed border-line-strong px-6 py-10 text-center">
      <p className="text-sm font-medium">{title}</p>
      {children && <div className="mx-auto mt-1 max-w-prose text-sm text-ink-2">{children}</div>}
    </div>
  );
}

export function Group({ title, count, children }: { title: string; count?: number; children: ReactNode }) {
  return (
    <section className="mt-7 first:mt-0">
      <h2 className="flex items-baseline gap-2 text-sm font-semibold">
        {title}
        {count !== undefined && <span className="text-xs font-normal text-ink-3 tabular-nums">{count}</span>}
      </h2>
      <div className="mt-2">{children}</div>
    </section>
  );
}

/** Entries below each other, in one frame. */
export function Rows({ children }: { children: ReactNode }) {
  return (
    <ul className="divide-y divide-line overflow-hidden rounded-xl border border-line bg-raised shadow-card">
      {children}
    </ul>
  );
}

export function Badge({
  tone = "plain",
  children,
}: {
  tone?: "plain" | "good" | "wait" | "bad";
  children: ReactNode;
}) {
  const tones = {
    plain: "bg-active text-ink-2",
    good: "bg-good-soft text-good",
    wait: "bg-wait-soft text-wait",
    bad: "bg-bad-soft text-bad",
  };
  return (
    <span
      className={`inline-flex shrink-0 items-center rounded-md px-1.5 text-2xs font-medium ${tones[tone]}`}
    >
      {children}
    </span>
  );
}
