import { memo } from "react";
import type { PermissionResult } from "../gen/events";
import type { Decision } from "../session/log";
import { answerDecision } from "../store/controller";
import { PermissionPanel } from "./PermissionPanel";
import { PlanPanel } from "./PlanPanel";
import { QuestionPanel } from "./QuestionPanel";

export interface PanelProps {
  decision: Decision;
  answer: (result: PermissionResult) => void;
}

/** What waits for the user, in the flow of the conversation. */
export const DecisionPanel = memo(function DecisionPanel({
  decision,
  cwd,
}: {
  decision: Decision;
  cwd?: string;
}) {
  const { sessionId, requestId, toolUseId, toolName } = decision.request;
  const answer = (result: PermissionResult) => answerDecision(sessionId, requestId, toolUseId, result);
  if (toolName === "AskUserQuestion") return <QuestionPanel decision={decision} answer={answer} />;
  if (toolName === "ExitPlanMode") return <PlanPanel decision={decision} answer={answer} />;
  return <PermissionPanel decision={decision} answer={answer} cwd={cwd} />;
});
