/** Tells whoever looks at the page that someone else can get in now. */
import i18next from "i18next";
import type { CredentialCreated } from "../../gen/events";
import { deviceOf } from "../../lib/device";
import { goToPage } from "../../store/route";
import { toasts } from "../../ui/toasts";
import { isOwnKey } from "../../wire/keys";
import { scopes } from "./newKey";

/** `read,run` in the page's words. */
function scopeNames(list: string): string {
  const names = list.split(",").map((name) => {
    const known = scopes.find((scope) => scope === name);
    return known ? i18next.t(`keys.scope.${known}`) : name;
  });
  return new Intl.ListFormat(i18next.language, { type: "conjunction" }).format(names);
}

export function announceCredential(created: CredentialCreated): void {
  const { t } = i18next;
  if (created.kind === "key" && isOwnKey(created.name)) return;
  const { title, description } =
    created.kind === "key"
      ? {
          title: t("announce.key", { name: created.name }),
          description: t("announce.keyHint", { scopes: scopeNames(created.scopes) }),
        }
      : {
          title: t("announce.browser", { device: deviceOf(created.name) || t("signIns.unknown") }),
          description: t("announce.browserHint", { address: created.address ?? "–" }),
        };
  toasts.add({
    title,
    description,
    // It stays until someone has seen it.
    timeout: 0,
    actionProps: { children: t("announce.review"), onClick: () => goToPage("access") },
  });
}
