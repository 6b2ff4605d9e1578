import { useVirtualizer } from "@tanstack/react-virtual";
import { type ReactNode, useCallback, useEffect, useRef } from "react";
import { useTranslation } from "react-i18next";
import { Fetched } from "../../ui/Page";
import type { Paged } from "./usePaged";

interface RowsProps<T> {
  label: string;
  paged: Paged<T>;
  rowHeight: number;
  keyOf: (item: T) => string;
  /** How many there are, in a sentence. */
  summary: string;
  empty: ReactNode;
  onMore: () => void;
  onRetry: () => void;
  children: (item: T) => ReactNode;
}

/** A list of any length: only what is in sight is drawn, and more is fetched on the way down. Arrow keys walk through it. */
export function Rows<T>({
  label,
  paged,
  rowHeight,
  keyOf,
  summary,
  empty,
  onMore,
  onRetry,
  children,
}: RowsProps<T>) {
  const { t } = useTranslation();
  const scroller = useRef<HTMLDivElement>(null);
  const { items, state } = paged;
  const getItemKey = useCallback(
    (index: number) => {
      const item = items[index];
      return item === undefined ? index : keyOf(item);
    },
    // oxlint-disable-next-line react-hooks/exhaustive-deps -- keys are a matter of the items alone
    [items],
  );
  const virtualizer = useVirtualizer({
    count: items.length,
    getScrollElement: () => scroller.current,
    getItemKey,
    estimateSize: () => rowHeight,
    overscan: 8,
    paddingEnd: 12,
  });
  const last = virtualizer.range?.endIndex ?? 0;
  useEffect(() => {
    if (last >= items.length - 20) onMore();
  }, [last, items.length, onMore]);

  const isThere = items.length > 0;
  useEffect(() => {
    const list = scroller.current;
    if (!list || !isThere) return;
    const onKeyDown = (event: KeyboardEvent) => {
      const step = event.key === "ArrowDown" ? 1 : event.key === "ArrowUp" ? -1 : 0;
      const row = (event.target as HTMLElement).closest("[data-index]");
      if (step === 0 || !row) return;
      event.preventDefault();
      const next = Number(row.getAttribute("data-index")) + step;
      virtualizer.scrollToIndex(next);
      // Drawn by then, if it was out of sight.
      requestAnimationFrame(() => list.querySelector<HTMLElement>(`[data-index="${next}"] a`)?.focus());
    };
    list.addEventListener("keydown", onKeyDown);
    return () => list.removeEventListener("keydown", onKeyDown);
  }, [isThere, virtualizer]);

  if (items.length === 0) {
    return (
      <div className="min-h-0 flex-1 overflow-y-auto px-4 py-4 sm:px-6">
        {state === "ready" ? (
          empty
        ) : (
          <Fetched
            loaded={
              state === "failed"
                ? { state, message: paged.message ?? t("common.error") }
                : { state: "loading" }
            }
            onRetry={onRetry}
          >
            {() => null}
          </Fetched>
        )}
      </div>
    );
  }
  return (
    <>
      <p role="status" className="shrink-0 px-4 pb-1.5 text-xs text-ink-3 tabular-nums sm:px-6">
        {summary}
      </p>
      <div
        ref={scroller}
        tabIndex={0}
        role="region"
        aria-label={label}
        className="min-h-0 flex-1 overflow-y-auto px-1.5 -outline-offset-2 sm:px-3.5"
      >
        <ul className="relative" style={{ height: virtualizer.getTotalSize() }}>
          {virtualizer.getVirtualItems().map((row) => {
            const item = items[row.index];
            return (
              item !== undefined && (
                <li
                  key={row.key}
                  data-index={row.index}
                  ref={virtualizer.measureElement}
                  className="absolute inset-x-0 top-0"
                  style={{ transform: `translateY(${row.start}px)` }}
                >
                  {children(item)}
                </li>
              )
            );
          })}
        </ul>
      </div>
    </>
  );
}
