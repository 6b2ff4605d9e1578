import { CornerLeftUp, Folder } from "lucide-react";
import { useEffect, useRef, useState } from "react";
import { useTranslation } from "react-i18next";
import type { Directories } from "../../gen/http";
import { getDirectory } from "../../wire/api";
import { Button } from "../../ui/Button";
import { Loading } from "../../ui/Loading";
import { Modal } from "../../ui/Modal";

export interface DirectoryPickerProps {
  open: boolean;
  start: string;
  onClose: () => void;
  onPick: (folder: string) => void;
}

export function DirectoryPicker({ open, start, onClose, onPick }: DirectoryPickerProps) {
  const { t } = useTranslation();
  return (
    <Modal open={open} onClose={onClose} title={t("picker.title")}>
      <Listing start={start} onPick={onPick} onClose={onClose} />
    </Modal>
  );
}

/** `of` is the folder that was asked for. */
type Loaded =
  | { readonly state: "loading" }
  | { readonly state: "ready"; readonly of: string | undefined; readonly directory: Directories }
  | { readonly state: "failed"; readonly message: string };

const rowClass =
  "flex w-full items-center gap-2.5 rounded-md px-2 py-1.5 text-left text-sm -outline-offset-2 hover:bg-hover pointer-coarse:py-2.5";

function Listing({ start, onPick, onClose }: Omit<DirectoryPickerProps, "open">) {
  const { t } = useTranslation();
  const [path, setPath] = useState<string | undefined>(start || undefined);
  const [loaded, setLoaded] = useState<Loaded>({ state: "loading" });
  const list = useRef<HTMLUListElement>(null);

  useEffect(() => {
    let current = true;
    getDirectory(path).then(
      (directory) => current && setLoaded({ state: "ready", of: path, directory }),
      (error: Error) => current && setLoaded({ state: "failed", message: error.message }),
    );
    return () => {
      current = false;
    };
  }, [path]);

  // What was pressed is gone with the folder that it was in. The dialog looks after a lost focus, too, so this comes after it.
  useEffect(() => {
    if (loaded.state !== "ready") return undefined;
    const frame = requestAnimationFrame(() => list.current?.querySelector("button")?.focus());
    return () => cancelAnimationFrame(frame);
  }, [loaded]);

  if (loaded.state === "loading") return <Loading className="py-6" />;
  if (loaded.state === "failed") {
    return (
      <div className="flex flex-col items-start gap-3">
        <p role="alert" className="text-sm text-bad">
          {loaded.message}
        </p>
        <Button onClick={() => setPath(undefined)}>{t("picker.home")}</Button>
      </div>
    );
  }
  const { directory } = loaded;
  return (
    <>
      <p className="mb-2 font-mono text-xs break-all text-ink-2">{directory.path}</p>
      <div className="relative">
        {loaded.of !== path && <Loading className="absolute top-2.5 right-3 rounded-md bg-canvas px-1.5" />}
        <ul
          ref={list}
          aria-busy={loaded.of !== path}
          className="max-h-80 min-h-40 overflow-y-auto rounded-lg border border-line p-1 aria-busy:opacity-60"
        >
          {directory.parent !== null && (
            <li>
              <button
                type="button"
                className={rowClass}
                onClick={() => setPath(directory.parent ?? undefined)}
              >
                <CornerLeftUp className="size-4 text-ink-3" aria-hidden />
                {t("picker.up")}
              </button>
            </li>
          )}
          {directory.entries.map((entry) => (
            <li key={entry.path}>
              <button type="button" className={rowClass} onClick={() => setPath(entry.path)}>
                <Folder className="size-4 shrink-0 text-ink-3" aria-hidden />
                <span className="truncate">{entry.name}</span>
              </button>
            </li>
          ))}
          {directory.entries.length === 0 && (
            <li className="px-2 py-1.5 text-sm text-ink-3">{t("picker.empty")}</li>
          )}
        </ul>
      </div>
      <div className="flex justify-end gap-2 pt-4">
        <Button onClick={onClose}>{t("common.cancel")}</Button>
        <Button variant="primary" onClick={() => onPick(directory.path)}>
          {t("picker.choose")}
        </Button>
      </div>
    </>
  );
}
