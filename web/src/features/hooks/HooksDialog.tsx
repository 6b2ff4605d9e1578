import { useTranslation } from "react-i18next";
import type { HookEvent, SessionInfo } from "../../gen/events";
import { Modal } from "../../ui/Modal";
import { hookEvents } from "../../session/hookCalls";
import { useHooks, wantHooks } from "../../store/hookCalls";

interface HooksDialogProps {
  session: SessionInfo;
  open: boolean;
  onClose: () => void;
}

const NONE: readonly HookEvent[] = [];

/** At which moments of its work the agent is to ask the user. */
export function HooksDialog({ session, open, onClose }: HooksDialogProps) {
  const { t } = useTranslation();
  const wanted = useHooks((state) => state.wanted.get(session.id) ?? NONE);
  const toggle = (event: HookEvent, on: boolean) =>
    wantHooks(
      session.id,
      hookEvents.filter((each) => (each === event ? on : wanted.includes(each))),
    );
  return (
    <Modal open={open} onClose={onClose} title={t("hooks.title")} description={t("hooks.text")}>
      <ul className="flex flex-col gap-2.5">
        {hookEvents.map((event) => (
          <li key={event}>
            <label className="flex items-start gap-2.5 text-sm">
              <input
                type="checkbox"
                checked={wanted.includes(event)}
                onChange={(change) => toggle(event, change.target.checked)}
                className="mt-[3px] size-3.5 shrink-0 accent-accent"
              />
              <span>
                {t(`hooks.event.${event}`)}
                <span className="ml-2 font-mono text-xs text-ink-3">{event}</span>
              </span>
            </label>
          </li>
        ))}
      </ul>
    </Modal>
  );
}
