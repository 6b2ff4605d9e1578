import { Popover } from "@base-ui/react/popover";
import { useId, useState } from "react";
import { useTranslation } from "react-i18next";
import type { SandboxLevel } from "../../gen/events";
import { cn } from "../../lib/cn";
import { lines } from "../../lib/lines";
import { wrongFolder, wrongHost } from "../../session/sandbox";
import { Button } from "../../ui/Button";
import { type SandboxChoiceProps, useSandboxButton } from "./SandboxButton";

const levels = ["off", "files", "on"] as const satisfies readonly SandboxLevel[];

/** The choice itself: a form that drops down from the button. */
export default function SandboxPopover(props: SandboxChoiceProps) {
  const { t } = useTranslation();
  const [open, setOpen] = useState(false);
  return (
    <Popover.Root open={open} onOpenChange={setOpen}>
      <Popover.Trigger {...useSandboxButton(props)} />
      <Popover.Portal>
        <Popover.Positioner align="start" sideOffset={6} className="z-50">
          <Popover.Popup className="max-h-(--available-height) w-[min(24rem,calc(100vw-2rem))] overflow-y-auto rounded-lg border border-line bg-raised p-3 shadow-pop transition-opacity outline-none data-[ending-style]:opacity-0 data-[starting-style]:opacity-0">
            <Popover.Title className="text-sm font-medium">{t("sandbox.title")}</Popover.Title>
            <SandboxForm {...props} onDone={() => setOpen(false)} />
          </Popover.Popup>
        </Popover.Positioner>
      </Popover.Portal>
    </Popover.Root>
  );
}

function SandboxForm({
  value,
  onChange,
  effective,
  impossible,
  onDone,
}: SandboxChoiceProps & { onDone: () => void }) {
  const { t } = useTranslation();
  const group = useId();
  const [level, setLevel] = useState(value.level);
  const [hosts, setHosts] = useState(value.hosts.join("\n"));
  const [folders, setFolders] = useState(value.folders.join("\n"));
  const [checked, setChecked] = useState(false);
  // Said when the user wants to save, and from then on as they type.
  const host = checked && level === "on" ? wrongHost(lines(hosts)) : undefined;
  const folder = checked && level !== "off" ? wrongFolder(lines(folders)) : undefined;
  return (
    <form
      className="mt-2 space-y-3"
      onSubmit={(event) => {
        event.preventDefault();
        // The form of the start page is around this one, as far as React is concerned.
        event.stopPropagation();
        setChecked(true);
        if (level === "on" && wrongHost(lines(hosts)) !== undefined) return;
        if (level !== "off" && wrongFolder(lines(folders)) !== undefined) return;
        onChange({ level, hosts: lines(hosts), folders: lines(folders) });
        onDone();
      }}
    >
      {impossible !== undefined && (
        <p className="rounded-md bg-wait-soft px-2.5 py-1.5 text-xs text-ink-2">
          {t("sandbox.impossible", { reason: impossible })}
        </p>
      )}
      <fieldset className="space-y-0.5">
        <legend className="sr-only">{t("sandbox.title")}</legend>
        {levels.map((each) => (
          <label
            key={each}
            className="-mx-1.5 flex items-start gap-2.5 rounded-md px-1.5 py-1.5 hover:bg-hover has-disabled:opacity-60"
          >
            <input
              type="radio"
              name={group}
              checked={level === each}
              disabled={impossible !== undefined && each !== "off" && level !== each}
              onChange={() => setLevel(each)}
              className="mt-1 size-3.5 shrink-0 accent-accent"
            />
            <span className="min-w-0 text-sm">
              {t(`sandbox.level.${each}.name`)}
              <span className="block text-xs text-pretty text-ink-3">{t(`sandbox.level.${each}.hint`)}</span>
            </span>
          </label>
        ))}
      </fieldset>
      {level === "on" && (
        <Lines
          label={t("sandbox.hosts")}
          hint={t("sandbox.hostsHint")}
          placeholder={t("sandbox.hostsExample")}
          value={hosts}
          onChange={setHosts}
          problem={host && t("sandbox.wrongHost", { entry: host })}
        />
      )}
      {level !== "off" && (
        <Lines
          label={t("sandbox.folders")}
          hint={t("sandbox.foldersHint")}
          placeholder={t("sandbox.foldersExample")}
          value={folders}
          onChange={setFolders}
          problem={folder && t("sandbox.wrongFolder", { entry: folder })}
        />
      )}
      {effective && (
        <div className="space-y-1 text-xs text-ink-3">
          {effective.hosts && (
            <p className="wrap-anywhere">
              {t("sandbox.reaches")} <span className="font-mono">{effective.hosts.join(", ")}</span>
            </p>
          )}
          <p className="wrap-anywhere">
            {t("sandbox.writes")} <span className="font-mono">{effective.folders.join(", ")}</span>
          </p>
        </div>
      )}
      <Button size="sm" type="submit" variant="primary">
        {t("common.save")}
      </Button>
    </form>
  );
}

function Lines({
  label,
  hint,
  placeholder,
  value,
  onChange,
  problem,
}: {
  label: string;
  hint: string;
  placeholder: string;
  value: string;
  onChange: (value: string) => void;
  problem: string | undefined;
}) {
  const id = useId();
  return (
    <div>
      <label htmlFor={id} className="text-xs font-medium">
        {label}
      </label>
      <textarea
        id={id}
        rows={2}
        value={value}
        spellCheck={false}
        autoCapitalize="off"
        autoComplete="off"
        placeholder={placeholder}
        aria-describedby={`${id}-hint`}
        aria-invalid={problem !== undefined || undefined}
        onChange={(event) => onChange(event.target.value)}
        className="mt-1 block w-full rounded-md border border-line-strong bg-canvas px-2 py-1.5 font-mono text-xs placeholder:text-ink-3 aria-invalid:border-bad"
      />
      <p
        id={`${id}-hint`}
        role={problem === undefined ? undefined : "alert"}
        className={cn("mt-1 text-xs wrap-anywhere", problem === undefined ? "text-ink-3" : "text-bad")}
      >
        {problem ?? hint}
      </p>
    </div>
  );
}
