/** The colour of the card around a decision: what is asked looks different from what is to be allowed. */
export function decisionBorder(toolName: string): string {
  return toolName === "AskUserQuestion" || toolName === "Elicitation" ? "border-ask/60" : "border-wait/60";
}
