import type { PermissionResult } from "../../gen/events";
import type { Decision } from "../../session/log";

/** What every kind of decision is shown with. */
export interface PanelProps {
  decision: Decision;
  answer: (result: PermissionResult) => void;
}
