import { Monitor, Smartphone, SquareTerminal } from "lucide-react";
import { useEffect } from "react";
import { useTranslation } from "react-i18next";
import { deviceOf } from "../../lib/device";
import { formatMoment } from "../../lib/format";
import { useLoaded } from "../../lib/useLoaded";
import { useApp } from "../../store/hooks";
import { Button } from "../../ui/Button";
import { Badge, Fetched, Group, Rows } from "../../ui/Page";
import { tellFailure } from "../../ui/toasts";
import type { SignInEntry } from "../../gen/http";
import { getSignIns, signOut } from "../../wire/api";
import { forgetPageSecret } from "../../wire/pageSecret";

/** The browsers that are signed in, and how to sign them out. */
export function SignIns() {
  const { t } = useTranslation();
  const [signIns, reload] = useLoaded("sign-ins", getSignIns);
  const announced = useApp((state) => state.announced);
  useEffect(() => {
    if (announced > 0) reload();
  }, [announced, reload]);
  const end = async (which: { id: string } | { all: true }, endsThis: boolean) => {
    await signOut(which);
    if (!endsThis) return reload();
    forgetPageSecret();
    // The page then says how to sign in again.
    location.reload();
  };
  return (
    <Group title={t("signIns.title")}>
      <p className="mb-2 text-sm text-ink-2">{t("signIns.hint")}</p>
      <Fetched loaded={signIns} onRetry={reload}>
        {(list) => (
          <>
            <Rows>
              {list.map((signIn) => (
                <Entry
                  key={signIn.id}
                  signIn={signIn}
                  onEnd={() => void end({ id: signIn.id }, signIn.current).catch(tellFailure)}
                />
              ))}
            </Rows>
            <Button
              size="sm"
              className="mt-3"
              onClick={() => void end({ all: true }, true).catch(tellFailure)}
            >
              {t("signIns.endAll")}
            </Button>
          </>
        )}
      </Fetched>
    </Group>
  );
}

function Entry({ signIn, onEnd }: { signIn: SignInEntry; onEnd: () => void }) {
  const { t, i18n } = useTranslation();
  const device = deviceOf(signIn.userAgent) || t("signIns.unknown");
  const Icon = /iPhone|Android/.test(device)
    ? Smartphone
    : device.startsWith("tiller")
      ? SquareTerminal
      : Monitor;
  const moment = (at: number) => formatMoment(at, i18n.language);
  return (
    <li className="flex flex-wrap items-center gap-x-4 gap-y-1 px-4 py-2.5 text-sm">
      <Icon className="size-4 shrink-0 text-ink-3" aria-hidden />
      <div className="min-w-0 flex-1 basis-60">
        <p className="flex flex-wrap items-center gap-2 font-medium" title={signIn.userAgent}>
          {device}
          {signIn.current && <Badge tone="good">{t("signIns.current")}</Badge>}
        </p>
        <p className="text-xs text-ink-3">
          {t("signIns.facts", {
            address: signIn.address,
            created: moment(signIn.createdAt),
            used: moment(signIn.lastUsedAt),
          })}
        </p>
      </div>
      <Button size="sm" onClick={onEnd} aria-label={t("signIns.endOf", { device })}>
        {t("signIns.end")}
      </Button>
    </li>
  );
}
