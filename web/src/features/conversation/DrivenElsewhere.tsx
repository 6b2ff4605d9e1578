import { TriangleAlert } from "lucide-react";
import { useTranslation } from "react-i18next";
import type { SessionInfo } from "../../gen/events";
import { forgetDriver, forkSession, takeOver } from "../../store/controller";
import { useApp } from "../../store/hooks";
import { Button } from "../../ui/Button";

/** Two that write one conversation would split it unnoticed: the user decides who goes on. */
export function DrivenElsewhere({ session }: { session: SessionInfo }) {
  const { t } = useTranslation();
  const driver = useApp((state) => state.drivers.get(session.id));
  if (!driver) return null;
  return (
    <div
      role="alert"
      className="mx-3 mb-2 flex flex-wrap items-center gap-x-3 gap-y-2 rounded-xl bg-wait-soft px-4 py-2.5 text-sm sm:mx-auto sm:w-[calc(100%-5rem)] sm:max-w-[47rem]"
    >
      <TriangleAlert className="size-4 shrink-0 text-wait" aria-hidden />
      <p className="min-w-0 flex-1 basis-64">
        {t("driver.text", { pid: driver.pid })}
        <code className="mt-0.5 block truncate font-mono text-xs text-ink-2">{driver.command}</code>
      </p>
      <span className="flex flex-wrap gap-2">
        <Button size="sm" onClick={() => forgetDriver(session.id)}>
          {t("driver.watch")}
        </Button>
        <Button
          size="sm"
          onClick={() => {
            forkSession(session.id);
            forgetDriver(session.id);
          }}
        >
          {t("session.fork")}
        </Button>
        <Button size="sm" variant="danger" onClick={() => takeOver(session.id)}>
          {t("driver.takeOver")}
        </Button>
      </span>
    </div>
  );
}
