import { useState } from "react";
import { useTranslation } from "react-i18next";
import { Button } from "../../ui/Button";

interface DenyFormProps {
  label: string;
  placeholder: string;
  confirm: string;
  onDeny: (message: string | undefined) => void;
  onBack: () => void;
}

/** Denies a request. The agent gets the reason. */
export function DenyForm({ label, placeholder, confirm, onDeny, onBack }: DenyFormProps) {
  const { t } = useTranslation();
  const [reason, setReason] = useState("");
  return (
    <form
      className="flex flex-wrap items-center gap-2"
      onSubmit={(event) => {
        event.preventDefault();
        onDeny(reason.trim() || undefined);
      }}
    >
      <input
        // The user has just asked to give a reason.
        // oxlint-disable-next-line jsx-a11y/no-autofocus
        autoFocus
        aria-label={label}
        placeholder={placeholder}
        value={reason}
        onChange={(event) => setReason(event.target.value)}
        onKeyDown={(event) => {
          event.stopPropagation();
          if (event.key === "Escape") onBack();
        }}
        className="h-8.5 min-w-0 flex-1 basis-56 rounded-lg border border-line-strong bg-canvas px-3 text-sm"
      />
      <Button type="submit" variant="danger">
        {confirm}
      </Button>
      <Button variant="ghost" onClick={onBack}>
        {t("common.back")}
      </Button>
    </form>
  );
}
