import { Folder, FolderOpen, History } from "lucide-react";
import { useId, useState } from "react";
import { useTranslation } from "react-i18next";
import { useLoaded } from "../../lib/useLoaded";
import { getDirectory, getRecentFolders } from "../../wire/api";
import { Dropdown, DropdownItem } from "../../ui/Dropdown";
import { IconButton, iconButtonClass } from "../../ui/IconButton";
import { Loading } from "../../ui/Loading";
import { onDemand } from "../../lib/onDemand";
import type { DirectoryPickerProps } from "./DirectoryPicker";

const DirectoryPicker = onDemand<DirectoryPickerProps>(
  async () => ({ default: (await import("./DirectoryPicker")).DirectoryPicker }),
  () => null,
);

const RECENT = 8;

/** The working directory: typed, picked, or one of the last. */
export function FolderField({ value, onChange }: { value: string; onChange: (folder: string) => void }) {
  const { t } = useTranslation();
  const [picking, setPicking] = useState(false);
  /** It has been asked for, and may be again. */
  const [picked, setPicked] = useState(false);
  if (picking && !picked) setPicked(true);
  // The list is a convenience: without it the field works as well.
  const [loaded] = useLoaded("recent", () => getRecentFolders(RECENT));
  const recent = loaded.state === "ready" ? loaded.value : [];
  const inside = useFoldersIn(parentOf(value));
  const list = useId();

  return (
    <div className="flex items-center gap-1">
      <datalist id={list}>
        {[...new Set([...recent, ...inside])].map((folder) => (
          <option key={folder} value={folder} />
        ))}
      </datalist>
      <Folder className="ml-2 size-4 shrink-0 text-ink-3" aria-hidden />
      <input
        aria-label={t("start.folder")}
        placeholder={t("start.folderHint")}
        value={value}
        onChange={(event) => onChange(event.target.value)}
        list={list}
        spellCheck={false}
        autoCapitalize="off"
        autoComplete="off"
        className="h-8 min-w-0 flex-1 rounded-lg bg-transparent px-1.5 font-mono text-xs outline-none focus-visible:bg-hover [&::-webkit-calendar-picker-indicator]:hidden!"
      />
      {(recent.length > 0 || loaded.state === "loading") && (
        <Dropdown
          label={t("start.recent")}
          trigger={<History className="size-4" />}
          triggerClassName={iconButtonClass}
        >
          {loaded.state === "loading" && <Loading className="px-2.5 py-1.5" />}
          {recent.map((folder) => (
            <DropdownItem key={folder} icon={<Folder />} onSelect={() => onChange(folder)}>
              <span className="max-w-80 truncate font-mono text-xs">{folder}</span>
            </DropdownItem>
          ))}
        </Dropdown>
      )}
      <IconButton label={t("start.browse")} onClick={() => setPicking(true)}>
        <FolderOpen className="size-4" />
      </IconButton>
      {picked && (
        <DirectoryPicker
          open={picking}
          start={value}
          onClose={() => setPicking(false)}
          onPick={(folder) => {
            onChange(folder);
            setPicking(false);
          }}
        />
      )}
    </div>
  );
}

/** What has been typed up to the last slash: the folder whose content completes the rest. */
function parentOf(path: string): string {
  return path.slice(0, path.lastIndexOf("/") + 1);
}

function useFoldersIn(parent: string): readonly string[] {
  const [loaded] = useLoaded(`folders:${parent}`, async () =>
    // While a path is being typed most beginnings of it lead nowhere, which is no error.
    parent === ""
      ? []
      : getDirectory(parent).then(
          ({ entries }) => entries.map((entry) => entry.path),
          () => [],
        ),
  );
  return loaded.state === "ready" ? loaded.value : [];
}
