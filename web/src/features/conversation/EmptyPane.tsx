import { type KeyboardEvent, useMemo, useState } from "react";
import { useTranslation } from "react-i18next";
import { baseName } from "../../lib/format";
import { cn } from "../../lib/cn";
import { useSessionList } from "../../store/hooks";
import { closePane, fillPane, sessionOf, usePanes } from "../../store/panes";
import { SessionMark } from "../../ui/StatusMark";

const MOST_SHOWN = 30;

/** A pane without a session: one is chosen here, by a part of its name. */
export function EmptyPane({ at }: { at: number }) {
  const { t } = useTranslation();
  const all = useSessionList();
  const panes = usePanes((state) => state.panes);
  const [typed, setTyped] = useState("");
  const [chosen, setChosen] = useState(0);
  const found = useMemo(() => {
    const shown = new Set(panes.map(sessionOf));
    const words = typed.toLowerCase().split(/\s+/).filter(Boolean);
    const fits = ({ title, cwd }: { title: string; cwd: string }) =>
      words.every((word) => `${title}\n${baseName(cwd)}`.toLowerCase().includes(word));
    return all
      .filter((session) => !session.archived && !shown.has(session.id) && fits(session))
      .slice(0, MOST_SHOWN);
  }, [all, panes, typed]);

  function onKeyDown(event: KeyboardEvent): void {
    if (event.nativeEvent.isComposing) return;
    const picked = found[chosen];
    if (event.key === "ArrowDown") setChosen(Math.min(found.length - 1, chosen + 1));
    else if (event.key === "ArrowUp") setChosen(Math.max(0, chosen - 1));
    else if (event.key === "Enter" && picked) fillPane(at, picked.id);
    else if (event.key === "Escape") closePane(at);
    else return;
    event.preventDefault();
  }

  return (
    <div className="mx-auto flex min-h-0 w-full max-w-md flex-1 flex-col px-3 pt-[8vh] pb-4">
      <h3 className="px-1 pb-2 text-sm font-semibold">{t("panes.choose")}</h3>
      <input
        // oxlint-disable-next-line jsx-a11y/no-autofocus -- the pane was opened to choose
        autoFocus
        role="combobox"
        aria-expanded
        aria-controls={`pane-${at}`}
        aria-activedescendant={found[chosen] && `pane-${at}-${chosen}`}
        aria-label={t("list.search")}
        placeholder={t("list.search")}
        value={typed}
        onChange={(event) => {
          setTyped(event.target.value);
          setChosen(0);
        }}
        onKeyDown={onKeyDown}
        className="h-9 w-full shrink-0 rounded-lg border border-line-strong bg-raised px-3 text-sm"
      />
      <div
        id={`pane-${at}`}
        role="listbox"
        data-inline
        aria-label={t("panes.choose")}
        className="min-h-0 flex-1 overflow-y-auto pt-1.5"
      >
        {found.map((session, index) => (
          // The field has the focus and its keys choose; the mouse is a second way.
          // oxlint-disable-next-line jsx-a11y/click-events-have-key-events
          <div
            key={session.id}
            id={`pane-${at}-${index}`}
            role="option"
            tabIndex={-1}
            aria-selected={index === chosen}
            onPointerMove={() => setChosen(index)}
            onClick={() => fillPane(at, session.id)}
            className={cn(
              "flex cursor-default items-center gap-2.5 rounded-lg px-2.5 py-1.5 text-sm",
              index === chosen && "bg-active",
            )}
          >
            <SessionMark session={session} />
            <span className="min-w-0 flex-1 truncate">{session.title}</span>
            <span className="max-w-32 shrink-0 truncate text-xs text-ink-3">{baseName(session.cwd)}</span>
          </div>
        ))}
        {found.length === 0 && <p className="px-1 py-2 text-sm text-ink-3">{t("list.nothing")}</p>}
      </div>
    </div>
  );
}
