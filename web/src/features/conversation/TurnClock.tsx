import { useTranslation } from "react-i18next";
import { formatClock } from "../../lib/format";
import { useSeconds } from "../../lib/useNow";
import { useSession } from "../../store/hooks";

/** How long the running turn has taken so far, second by second. */
export function TurnClock({ sessionId }: { sessionId: string }) {
  const { i18n } = useTranslation();
  const began = useSession(sessionId)?.summary?.turnBegan;
  const now = useSeconds(began !== undefined);
  if (began === undefined) return null;
  return (
    <span className="tabular-nums" data-clock>
      {formatClock(now - began, i18n.language)}
    </span>
  );
}
