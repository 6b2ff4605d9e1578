import i18next from "i18next";
import { toasts } from "../../ui/toasts";

/** Something was asked for that needs the server. */
export function tellOffline(): void {
  toasts.add({ title: i18next.t("sessionGroup.offline"), type: "error" });
}
