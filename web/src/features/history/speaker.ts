import type { SearchResult } from "../../gen/history";

type Speaker = SearchResult["role"] | "agent" | "summary" | "tool";

/** Whose words were found: much of what stands in the user's name was never said by a person. */
export function speaker(
  hit: Pick<SearchResult, "role" | "agent_id" | "is_summary" | "is_tool_result">,
): Speaker {
  if (hit.agent_id) return "agent";
  if (hit.is_summary) return "summary";
  return hit.is_tool_result ? "tool" : hit.role;
}
