import { useRef, useState } from "react";
import { useTranslation } from "react-i18next";
import type { PromptItem } from "../../session/items";
import { Button } from "../../ui/Button";
import { focusComposer } from "../../ui/focus";
import { PromptField } from "../../ui/PromptField";
import { endEditing } from "./editing";
import { report, resend } from "./goingBack";

function close(): void {
  endEditing();
  focusComposer();
}

/** An earlier prompt, to be written anew and sent in place of everything from it on. */
export function EditPrompt({ item, sessionId }: { item: PromptItem; sessionId: string }) {
  const { t } = useTranslation();
  const [text, setText] = useState(item.text);
  const field = useRef<HTMLTextAreaElement>(null);
  const empty = text.trim() === "";

  function send(): void {
    if (empty) return;
    close();
    resend(sessionId, item, text.trim()).catch((error: unknown) => report("edit.failed", error));
  }

  return (
    <form
      className="pt-3"
      onSubmit={(event) => {
        event.preventDefault();
        send();
      }}
    >
      <div className="rounded-xl border border-accent bg-raised p-2 shadow-card">
        <PromptField
          ref={field}
          // The user has just asked to change it.
          // oxlint-disable-next-line jsx-a11y/no-autofocus
          autoFocus
          onFocus={(event) => event.currentTarget.setSelectionRange(item.text.length, item.text.length)}
          aria-label={t("edit.label")}
          value={text}
          onChange={setText}
          onSend={send}
          onStop={close}
          invalid={empty}
          className="px-2 py-1"
        />
        <div className="flex flex-wrap items-center gap-2 pt-1">
          <p className="min-w-0 flex-1 basis-48 px-2 text-xs text-ink-3">{t("edit.hint")}</p>
          <Button size="sm" onClick={close}>
            {t("common.cancel")}
          </Button>
          <Button size="sm" type="submit" variant="primary" disabled={empty}>
            {t("edit.send")}
          </Button>
        </div>
      </div>
    </form>
  );
}
