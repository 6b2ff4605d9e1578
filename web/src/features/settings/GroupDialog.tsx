import { useState } from "react";
import { useTranslation } from "react-i18next";
import { makeGroup, renameGroup } from "../../store/arrange";
import { Button } from "../../ui/Button";
import { Modal } from "../../ui/Modal";
import { tellOffline } from "./offline";

interface GroupDialogProps {
  open: boolean;
  onClose: () => void;
  /** The group that gets another name; else a new one is made. */
  group?: { readonly id: string; readonly name: string };
  /** The session that goes into the new group. */
  session?: string;
}

const LONGEST = 80;

/** Names a group of sessions. */
export function GroupDialog(props: GroupDialogProps) {
  const { t } = useTranslation();
  const { open, onClose, group } = props;
  return (
    <Modal open={open} onClose={onClose} title={t(group ? "sessionGroup.rename" : "sessionGroup.new")}>
      <GroupForm {...props} />
    </Modal>
  );
}

function GroupForm({ onClose, group, session }: GroupDialogProps) {
  const { t } = useTranslation();
  const [name, setName] = useState(group?.name ?? "");
  const given = name.trim();
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        if (given === "") return;
        const sent = group ? renameGroup(group.id, given) : makeGroup(given, session) !== undefined;
        if (sent) onClose();
        else tellOffline();
      }}
    >
      <input
        aria-label={t("sessionGroup.name")}
        placeholder={t("sessionGroup.name")}
        value={name}
        maxLength={LONGEST}
        onFocus={(event) => event.currentTarget.select()}
        onChange={(event) => setName(event.target.value)}
        className="h-9 w-full rounded-lg border border-line-strong bg-canvas px-3 text-sm"
      />
      <div className="flex justify-end gap-2 pt-4">
        <Button onClick={onClose}>{t("common.cancel")}</Button>
        <Button type="submit" variant="primary" disabled={given === ""}>
          {t("common.save")}
        </Button>
      </div>
    </form>
  );
}
