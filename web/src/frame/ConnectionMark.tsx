import { Wifi, WifiOff } from "lucide-react";
import { useTranslation } from "react-i18next";
import { useApp } from "../store/hooks";

/** Quiet while all is well. The bar above the page says more when it is not. */
export function ConnectionMark() {
  const { t } = useTranslation();
  const connection = useApp((state) => state.connection);
  const version = useApp((state) => state.system?.version);
  return (
    <div className="flex min-w-0 flex-1 items-center gap-2 text-xs text-ink-3">
      {connection === "offline" ? (
        <>
          <WifiOff className="size-3.5 shrink-0 text-wait" aria-hidden />
          <span className="truncate text-wait">{t("connection.offline")}</span>
        </>
      ) : (
        <>
          <Wifi className="size-3.5 shrink-0" aria-hidden />
          <span className="truncate">
            {connection === "open"
              ? t("connection.open", { version: version ?? "" })
              : t("connection.connecting")}
          </span>
        </>
      )}
    </div>
  );
}
