import { useState } from "react";
import { useTranslation } from "react-i18next";
import type { KeyEntry } from "../../gen/http";
import { Button } from "../../ui/Button";
import { Modal } from "../../ui/Modal";
import { tellFailure } from "../../ui/toasts";
import { revokeKey } from "../../wire/keys";
import { Option } from "./fields";

interface RevokeDialogProps {
  entry: KeyEntry | undefined;
  onClose: () => void;
  onRevoked: () => void;
}

const endings = ["stop", "keep"] as const;

/** Asks what becomes of what the key has started. */
export function RevokeDialog({ entry, onClose, onRevoked }: RevokeDialogProps) {
  const { t } = useTranslation();
  return (
    <Modal
      open={entry !== undefined}
      onClose={onClose}
      title={t("keys.revokeTitle", { name: entry?.name ?? "" })}
      description={t("keys.revokeHint")}
    >
      {entry && <RevokeForm key={entry.id} entry={entry} onClose={onClose} onRevoked={onRevoked} />}
    </Modal>
  );
}

function RevokeForm({ entry, onClose, onRevoked }: RevokeDialogProps & { entry: KeyEntry }) {
  const { t } = useTranslation();
  const [sessions, setSessions] = useState<(typeof endings)[number]>("stop");
  const [busy, setBusy] = useState(false);
  const revoke = async () => {
    setBusy(true);
    try {
      await revokeKey(entry.id, sessions);
      onClose();
    } catch (error) {
      tellFailure(error);
      setBusy(false);
    }
    onRevoked();
  };
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        void revoke();
      }}
    >
      <fieldset className="flex flex-col gap-2">
        <legend className="mb-1.5 text-sm font-medium">{t("keys.after.label")}</legend>
        {endings.map((each) => (
          <Option
            key={each}
            type="radio"
            name="after"
            checked={sessions === each}
            onChange={() => setSessions(each)}
            label={t(`keys.after.${each}.name`)}
            hint={t(`keys.after.${each}.hint`)}
          />
        ))}
      </fieldset>
      <div className="flex justify-end gap-2 pt-5">
        <Button onClick={onClose}>{t("common.cancel")}</Button>
        <Button type="submit" variant="danger" disabled={busy}>
          {t("keys.revoke")}
        </Button>
      </div>
    </form>
  );
}
