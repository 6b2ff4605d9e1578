import { KeyRound } from "lucide-react";
import { useEffect, useState } from "react";
import { useTranslation } from "react-i18next";
import type { KeyEntry } from "../../gen/http";
import { formatMoment } from "../../lib/format";
import { useLoaded } from "../../lib/useLoaded";
import { useApp } from "../../store/hooks";
import { Button } from "../../ui/Button";
import { Badge, Empty, Fetched, Group, Rows } from "../../ui/Page";
import { getKeys } from "../../wire/keys";
import { useLimits } from "./limits";
import { RevokeDialog } from "./RevokeDialog";

/** The keys for programs. */
export function Keys({ made, onCreate }: { made: number; onCreate: () => void }) {
  const { t } = useTranslation();
  const [keys, reload] = useLoaded("keys", getKeys);
  const [revoking, setRevoking] = useState<KeyEntry>();
  // Keys come from the command line, too.
  const announced = useApp((state) => state.announced);
  useEffect(() => {
    if (made + announced > 0) reload();
  }, [made, announced, reload]);
  return (
    <Group title={t("keys.title")}>
      <p className="mb-2 max-w-prose text-sm text-ink-2">{t("keys.hint")}</p>
      <Fetched loaded={keys} onRetry={reload}>
        {(list) =>
          list.length === 0 ? (
            <Empty title={t("keys.none")}>
              <p>{t("keys.noneHint")}</p>
              <Button className="mt-3" onClick={onCreate}>
                {t("keys.create")}
              </Button>
            </Empty>
          ) : (
            <Rows>
              {list.map((key) => (
                <Entry key={key.id} entry={key} onRevoke={() => setRevoking(key)} />
              ))}
            </Rows>
          )
        }
      </Fetched>
      <RevokeDialog entry={revoking} onClose={() => setRevoking(undefined)} onRevoked={reload} />
    </Group>
  );
}

function Entry({ entry, onRevoke }: { entry: KeyEntry; onRevoke: () => void }) {
  const { t, i18n } = useTranslation();
  const limits = useLimits()(entry);
  const moment = (at: number) => formatMoment(at, i18n.language);
  return (
    <li className="flex flex-wrap items-start gap-x-4 gap-y-2 px-4 py-3 text-sm">
      <KeyRound className="mt-0.5 size-4 shrink-0 text-ink-3" aria-hidden />
      <div className="min-w-0 flex-1 basis-60">
        <p className="flex flex-wrap items-center gap-2 font-medium">
          <span className="break-all">{entry.name}</span>
          {entry.scopes.map((scope) => (
            <Badge key={scope} tone={scope === "approve" ? "wait" : "plain"}>
              {t(`keys.scope.${scope}`)}
            </Badge>
          ))}
        </p>
        {limits.length > 0 && (
          <ul className="mt-1 flex flex-col gap-0.5 text-xs text-ink-2">
            {limits.map((limit) => (
              <li key={limit} className="break-all">
                {limit}
              </li>
            ))}
          </ul>
        )}
        <p className="mt-1 text-xs text-ink-3">
          {t("keys.created", { at: moment(entry.createdAt) })}
          {" · "}
          {entry.lastUsedAt === null ? t("keys.unused") : t("keys.used", { at: moment(entry.lastUsedAt) })}
        </p>
      </div>
      <Button
        size="sm"
        variant="danger"
        onClick={onRevoke}
        aria-label={t("keys.revokeOf", { name: entry.name })}
      >
        {t("keys.revoke")}
      </Button>
    </li>
  );
}
