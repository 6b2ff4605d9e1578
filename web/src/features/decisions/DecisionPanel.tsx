import { memo } from "react";
import type { PermissionResult } from "../../gen/events";
import type { Decision } from "../../session/log";
import { answerDecision } from "../../store/controller";
import type { Json } from "../../wire/json";
import { ElicitationPanel } from "./ElicitationPanel";
import { PermissionPanel } from "./PermissionPanel";
import { PlanPanel } from "./PlanPanel";
import { QuestionPanel } from "./QuestionPanel";

export interface DecisionPanelProps {
  decision: Decision;
  /** The input of the tool call as the model wrote it. */
  call?: Json;
  cwd?: string;
}

/** What waits for the user, in the flow of the conversation. */
const DecisionPanel = memo(function DecisionPanel({ decision, call, cwd }: DecisionPanelProps) {
  const { toolName } = decision.request;
  const answer = (result: PermissionResult) => answerDecision(decision.request, result);
  if (toolName === "AskUserQuestion") return <QuestionPanel decision={decision} answer={answer} />;
  if (toolName === "ExitPlanMode") return <PlanPanel decision={decision} answer={answer} call={call} />;
  if (toolName === "Elicitation") return <ElicitationPanel decision={decision} answer={answer} />;
  return <PermissionPanel decision={decision} answer={answer} cwd={cwd} />;
});

export default DecisionPanel;
