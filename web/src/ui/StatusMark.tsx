import { Circle, CircleAlert, CircleCheck, CircleDot, FileWarning, LoaderCircle } from "lucide-react";
import { useTranslation } from "react-i18next";
import type { SessionInfo, SessionStatus } from "../gen/events";
import { useHooks } from "../store/hookCalls";
import { cn } from "../lib/cn";

export type Mark = SessionStatus | "waiting" | "damaged";

/** A session whose agent calls back waits for the user as one does that asks for permission. */
export function useMark({ id, status, pending, damaged }: SessionInfo): Mark {
  const called = useHooks(({ calls }) => calls.some((call) => call.sessionId === id));
  if (damaged) return "damaged";
  return pending > 0 || called ? "waiting" : status;
}

const looks = {
  waiting: { icon: CircleDot, className: "text-wait" },
  running: { icon: LoaderCircle, className: "text-accent motion-safe:animate-spin" },
  completed: { icon: CircleCheck, className: "text-ink-3" },
  idle: { icon: Circle, className: "text-ink-3" },
  error: { icon: CircleAlert, className: "text-bad" },
  damaged: { icon: FileWarning, className: "text-bad" },
} as const;

/** Each state has its own shape as well as its colour, and a name for those who see neither. */
export function StatusMark({ mark, className }: { mark: Mark; className?: string }) {
  const { t } = useTranslation();
  const { icon: Icon, className: look } = looks[mark];
  return (
    <Icon role="img" aria-label={t(`status.${mark}`)} className={cn("size-3.5 shrink-0", look, className)} />
  );
}

export function SessionMark({ session, className }: { session: SessionInfo; className?: string }) {
  return <StatusMark mark={useMark(session)} className={className} />;
}
