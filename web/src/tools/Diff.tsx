import { useTranslation } from "react-i18next";
import { onDemand } from "../lib/onDemand";
import type { DiffViewProps } from "./DiffView";

/** The changes of an edit, once the part that computes them is there. */
export const Diff = onDemand<DiffViewProps>(() => import("./DiffView"), Waiting);

function Waiting() {
  const { t } = useTranslation();
  return <p className="px-3 py-2 text-xs text-ink-3">{t("common.loading")}</p>;
}
