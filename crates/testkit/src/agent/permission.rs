//! When a tool needs no permission, and what an answer means.

use serde_json::Value;

/// The answer to a permission prompt.
#[derive(Debug)]
pub(crate) enum Decision {
    /// With the allowed input, which the user may have changed.
    Allow { input: Value },
    /// The call's result, with the reason, is already written.
    Deny,
}

/// The decision of the session's mode and rules, before anybody is asked.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Beforehand {
    Allowed,
    Denied,
    Ask,
}

/// Rules for tools that need no permission.
#[derive(Debug)]
pub(crate) struct Rules {
    allowed: Vec<String>,
}

impl Rules {
    pub(crate) fn new(allowed: Vec<String>) -> Self {
        Self { allowed }
    }

    /// Adds the rules that a user chose with an answer.
    pub(crate) fn add(&mut self, update: &Value) {
        let rules = update["rules"].as_array().map_or(&[][..], Vec::as_slice);
        for rule in rules {
            let tool = rule["toolName"].as_str().unwrap_or_default();
            self.allowed.push(match rule["ruleContent"].as_str() {
                Some(content) => format!("{tool}({content})"),
                None => tool.to_owned(),
            });
        }
    }

    fn allow(&self, tool: &str, input: &Value) -> bool {
        self.allowed.iter().any(|rule| {
            let Some((name, content)) = rule.strip_suffix(')').and_then(|rule| rule.split_once('(')) else {
                return rule == tool;
            };
            let command = input["command"].as_str().unwrap_or_default();
            // `Bash(git *)` and the older `Bash(git:*)` allow all commands with this beginning.
            let prefix = content.strip_suffix(":*").or_else(|| content.strip_suffix(" *"));
            name == tool
                && match prefix {
                    Some(prefix) => command
                        .strip_prefix(prefix)
                        .is_some_and(|rest| rest.is_empty() || rest.starts_with(' ')),
                    None => command == content,
                }
        })
    }

    pub(crate) fn beforehand(&self, mode: &str, tool: &str, input: &Value) -> Beforehand {
        match (mode, tool) {
            // Questions and plans are for the user in every mode.
            (_, "AskUserQuestion" | "ExitPlanMode") => Beforehand::Ask,
            (_, "TodoWrite") | ("bypassPermissions", _) | ("acceptEdits", "Edit" | "Write") => {
                Beforehand::Allowed
            }
            _ if self.allow(tool, input) => Beforehand::Allowed,
            ("dontAsk", _) => Beforehand::Denied,
            _ => Beforehand::Ask,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn rules_name_a_tool_a_command_or_its_beginning() {
        let rules = Rules::new(vec!["Write".into(), "Bash(ls)".into(), "Bash(git *)".into()]);
        let bash = |command: &str| rules.beforehand("default", "Bash", &json!({"command": command}));
        assert_eq!(
            rules.beforehand("default", "Write", &json!({})),
            Beforehand::Allowed
        );
        assert_eq!(rules.beforehand("default", "Edit", &json!({})), Beforehand::Ask);
        assert_eq!(bash("ls"), Beforehand::Allowed);
        assert_eq!(bash("ls -a"), Beforehand::Ask);
        assert_eq!(bash("git status"), Beforehand::Allowed);
        assert_eq!(bash("gitk"), Beforehand::Ask);
    }

    #[test]
    fn questions_and_plans_are_put_to_the_user_in_every_mode() {
        let rules = Rules::new(vec!["AskUserQuestion".into(), "ExitPlanMode".into()]);
        for mode in ["default", "acceptEdits", "bypassPermissions", "dontAsk"] {
            for tool in ["AskUserQuestion", "ExitPlanMode"] {
                assert_eq!(rules.beforehand(mode, tool, &json!({})), Beforehand::Ask);
            }
        }
    }
}
