import { Dialog } from "@base-ui/react/dialog";
import { Search } from "lucide-react";
import { Fragment, type KeyboardEvent, useEffect, useId, useState } from "react";
import { useTranslation } from "react-i18next";
import { cn } from "../../lib/cn";
import { afterPalette } from "../../ui/focus";
import { backdropClass } from "../../ui/Modal";
import { Kbd } from "../../ui/Kbd";
import { type Command, useCommands } from "./commands";
import { matching } from "./match";
import { closePalette, usePalette } from "../../store/palette";

/** Everything that can be done, by typing a part of its name. */
export function Palette() {
  const open = usePalette((state) => state.open);
  const { t } = useTranslation();
  return (
    <Dialog.Root open={open} onOpenChange={(next) => !next && closePalette()}>
      <Dialog.Portal>
        <Dialog.Backdrop className={backdropClass} />
        <Dialog.Popup
          finalFocus={afterPalette}
          aria-label={t("palette.label")}
          className="fixed top-[12vh] left-1/2 z-40 flex max-h-[min(30rem,76dvh)] w-[calc(100vw-2rem)] max-w-xl -translate-x-1/2 flex-col overflow-hidden rounded-xl border border-line bg-raised shadow-pop transition duration-150 data-[ending-style]:opacity-0 data-[starting-style]:opacity-0"
        >
          <Chooser />
        </Dialog.Popup>
      </Dialog.Portal>
    </Dialog.Root>
  );
}

const MOST_SHOWN = 60;

function run(command: Command | undefined): void {
  if (!command) return;
  closePalette();
  // After the palette is gone and has given the focus back: what is done may take it.
  requestAnimationFrame(command.run);
}

function Chooser() {
  const { t } = useTranslation();
  const [typed, setTyped] = useState("");
  const [at, setAt] = useState(0);
  const id = useId();
  const found = matching(useCommands(), typed).slice(0, MOST_SHOWN);
  const chosen = found[Math.min(at, found.length - 1)];

  const chosenId = chosen && `${id}-${chosen.key}`;
  useEffect(() => {
    if (chosenId) document.getElementById(chosenId)?.scrollIntoView({ block: "nearest" });
  }, [chosenId]);

  function onKeyDown(event: KeyboardEvent): void {
    if (event.nativeEvent.isComposing) return;
    if (event.key === "ArrowDown") setAt(Math.min(found.length - 1, at + 1));
    else if (event.key === "ArrowUp") setAt(Math.max(0, at - 1));
    else if (event.key === "Enter") run(chosen);
    else return;
    event.preventDefault();
  }

  return (
    <>
      <div className="flex items-center gap-2.5 border-b border-line px-4">
        <Search className="size-4 shrink-0 text-ink-3" aria-hidden />
        <input
          role="combobox"
          aria-label={t("palette.label")}
          aria-expanded
          aria-controls={`${id}-list`}
          aria-activedescendant={chosenId}
          placeholder={t("palette.hint")}
          value={typed}
          onChange={(event) => {
            setTyped(event.target.value);
            setAt(0);
          }}
          onKeyDown={onKeyDown}
          className="h-12 min-w-0 flex-1 bg-transparent outline-none"
        />
      </div>
      <div
        id={`${id}-list`}
        role="listbox"
        aria-label={t("palette.label")}
        className="min-h-0 flex-1 overflow-y-auto p-1.5"
      >
        {found.map((command, index) => (
          <Fragment key={command.key}>
            {typed.trim() === "" && command.group !== found[index - 1]?.group && (
              <p aria-hidden className="px-2.5 pt-2.5 pb-1 text-xs font-medium text-ink-3 first:pt-1">
                {t(`palette.group.${command.group}`)}
              </p>
            )}
            {/* The field has the focus and its keys choose; the mouse is a second way. */}
            {/* oxlint-disable-next-line jsx-a11y/click-events-have-key-events */}
            <div
              id={`${id}-${command.key}`}
              role="option"
              tabIndex={-1}
              aria-selected={command === chosen}
              onPointerMove={() => setAt(found.indexOf(command))}
              onClick={() => run(command)}
              className={cn(
                "flex cursor-default items-center gap-2.5 rounded-lg px-2.5 py-2 text-sm select-none",
                command === chosen && "bg-active",
              )}
            >
              <command.icon className="size-4 shrink-0 text-ink-3" aria-hidden />
              <span className="min-w-0 flex-1 truncate">{command.label}</span>
              {command.note && <span className="shrink-0 truncate text-xs text-ink-3">{command.note}</span>}
              {command.keys?.map((key) => (
                <Kbd key={key}>{key}</Kbd>
              ))}
            </div>
          </Fragment>
        ))}
      </div>
      {found.length === 0 && <p className="px-4 pb-4 text-sm text-ink-3">{t("palette.nothing")}</p>}
    </>
  );
}
