/** What a key never exceeds, in words. */
import { useTranslation } from "react-i18next";
import type { KeyEntry } from "../../gen/http";
import { modeName } from "../../session/modes";

export function useLimits(): (key: KeyEntry) => string[] {
  const { t, i18n } = useTranslation();
  const list = new Intl.ListFormat(i18n.language, { type: "conjunction" });
  const money = new Intl.NumberFormat(i18n.language, { style: "currency", currency: "USD" });
  const mode = (name: string) => modeName(t, name);
  return ({ ceiling, approval }) => {
    const limits: string[] = [];
    if (ceiling.modes) limits.push(t("keys.limit.modes", { list: list.format(ceiling.modes.map(mode)) }));
    if (ceiling.tools) limits.push(t("keys.limit.tools", { list: list.format(ceiling.tools) }));
    if (ceiling.roots) limits.push(t("keys.limit.roots", { list: list.format(ceiling.roots) }));
    if (ceiling.budgetUsd !== undefined)
      limits.push(t("keys.limit.budget", { amount: money.format(ceiling.budgetUsd) }));
    if (ceiling.sandbox) limits.push(t("keys.limit.sandbox"));
    else if (ceiling.shield) limits.push(t("keys.limit.shield"));
    if (ceiling.sandboxFolders)
      limits.push(t("keys.limit.sandboxFolders", { list: list.format(ceiling.sandboxFolders) }));
    if (ceiling.sandboxHosts)
      limits.push(t("keys.limit.sandboxHosts", { list: list.format(ceiling.sandboxHosts) }));
    if (approval === "auto") limits.push(t("keys.limit.auto"));
    if (approval === "ask") limits.push(t("keys.limit.ask"));
    const { sees } = ceiling;
    if (sees === "all") limits.push(t("keys.limit.seesAll"));
    else if (sees && typeof sees === "object" && "folders" in sees)
      limits.push(t("keys.limit.seesFolders", { list: list.format(sees.folders) }));
    else if (sees && typeof sees === "object" && "sessions" in sees)
      limits.push(t("keys.limit.seesSessions", { count: sees.sessions.length }));
    return limits;
  };
}
