import { useState } from "react";
import { useTranslation } from "react-i18next";
import type { SessionInfo } from "../../gen/events";
import { renameSession } from "../../store/controller";
import { Button } from "../../ui/Button";
import { Modal } from "../../ui/Modal";

interface RenameDialogProps {
  session: SessionInfo;
  open: boolean;
  onClose: () => void;
}

export function RenameDialog({ session, open, onClose }: RenameDialogProps) {
  const { t } = useTranslation();
  return (
    <Modal open={open} onClose={onClose} title={t("session.rename")}>
      <RenameForm session={session} onClose={onClose} />
    </Modal>
  );
}

function RenameForm({ session, onClose }: Omit<RenameDialogProps, "open">) {
  const { t } = useTranslation();
  const [title, setTitle] = useState(session.title);
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        if (title.trim() === "") return;
        renameSession(session.id, title.trim());
        onClose();
      }}
    >
      <input
        aria-label={t("session.title")}
        value={title}
        maxLength={200}
        onFocus={(event) => event.currentTarget.select()}
        onChange={(event) => setTitle(event.target.value)}
        className="h-9 w-full rounded-lg border border-line-strong bg-canvas px-3 text-sm"
      />
      <div className="flex justify-end gap-2 pt-4">
        <Button onClick={onClose}>{t("common.cancel")}</Button>
        <Button type="submit" variant="primary" disabled={title.trim() === ""}>
          {t("common.save")}
        </Button>
      </div>
    </form>
  );
}
