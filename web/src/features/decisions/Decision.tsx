import { useTranslation } from "react-i18next";
import { onDemand } from "../../lib/onDemand";
import type { DecisionPanelProps } from "./DecisionPanel";

function Waiting() {
  const { t } = useTranslation();
  return (
    <p role="status" className="px-3 py-2.5 text-sm text-ink-3">
      {t("common.loading")}
    </p>
  );
}

/** What waits for the user. Fetched once the page is idle: most pages open without anything that waits. */
export const DecisionPanel = onDemand<DecisionPanelProps>(() => import("./DecisionPanel"), Waiting);
