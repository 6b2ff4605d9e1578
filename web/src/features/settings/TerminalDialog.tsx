import { useTranslation } from "react-i18next";
import type { SessionInfo } from "../../gen/events";
import { shellQuote } from "../../lib/format";
import { CopyButton } from "../../ui/CopyButton";
import { Modal } from "../../ui/Modal";

/** The command that goes on with this conversation in a terminal. It resumes only from the same folder. */
export function TerminalDialog({
  session,
  open,
  onClose,
}: {
  session: SessionInfo;
  open: boolean;
  onClose: () => void;
}) {
  const { t } = useTranslation();
  const command = `cd ${shellQuote(session.cwd)} && claude --resume ${session.claudeSessionId ?? ""}`;
  return (
    <Modal
      open={open}
      onClose={onClose}
      title={t("session.terminal")}
      description={t("session.terminalHint")}
    >
      <div className="flex items-start gap-2 rounded-lg border border-line bg-sunken py-2 pr-1.5 pl-3">
        <code className="min-w-0 flex-1 py-1 font-mono text-xs break-all">{command}</code>
        <CopyButton text={command} />
      </div>
    </Modal>
  );
}
