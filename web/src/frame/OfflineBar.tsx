import { WifiOff } from "lucide-react";
import { useTranslation } from "react-i18next";
import { retryConnection } from "../store/connection";
import { useApp } from "../store/hooks";

/** Says on every page and at every width that the server can't be reached, where the navigation may be out of sight. */
export function OfflineBar() {
  const { t } = useTranslation();
  const offline = useApp((state) => state.connection === "offline");
  return (
    <div role="status">
      {offline && (
        <p className="flex min-h-8 items-center justify-center gap-2 border-b border-line bg-wait-soft px-3 py-1 text-xs text-wait">
          <WifiOff className="size-3.5 shrink-0" aria-hidden />
          <span className="min-w-0">{t("connection.away")}</span>
          <button
            type="button"
            onClick={retryConnection}
            className="shrink-0 font-medium text-accent hover:underline pointer-coarse:py-2"
          >
            {t("connection.retry")}
          </button>
        </p>
      )}
    </div>
  );
}
