//! Tools with which an agent speaks to a person: they are put to the user in every permission mode.

use serde_json::Value;

use crate::message::ToolUseBlock;

/// Asks the user questions.
pub const ASK_TOOL: &str = "AskUserQuestion";
/// Asks the user to approve a plan.
pub const PLAN_TOOL: &str = "ExitPlanMode";

/// Whether a tool of this name speaks to a person.
pub fn is_for_people(tool: &str) -> bool {
    [ASK_TOOL, PLAN_TOOL].contains(&tool)
}

impl ToolUseBlock {
    /// The plan, if the call asks the user to approve one.
    pub fn plan(&self) -> Option<&str> {
        if self.name != PLAN_TOOL {
            return None;
        }
        self.input.get("plan").and_then(Value::as_str)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_plan_is_found_in_its_tool_only() {
        let call = |name: &str| ToolUseBlock {
            name: name.to_owned(),
            input: json!({ "plan": "1. Look" }),
            ..ToolUseBlock::default()
        };
        assert_eq!(call(PLAN_TOOL).plan(), Some("1. Look"));
        assert_eq!(call("Bash").plan(), None);
        assert!(is_for_people(PLAN_TOOL) && is_for_people(ASK_TOOL) && !is_for_people("Bash"));
    }
}
