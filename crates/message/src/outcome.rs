//! How a turn ended.

use serde_json::Value;

use crate::message::TurnResult;

/// How a turn ended, by its result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum TurnOutcome {
    /// It succeeded.
    Success,
    /// It failed, or was interrupted: the result does not tell which.
    Failed,
    /// The limit of turns was reached.
    MaxTurns,
    /// The budget was used up.
    MaxBudget,
    /// The answer did not take the form that was asked for.
    MaxStructuredOutputRetries,
}

impl TurnResult {
    /// How the turn ended. `is_error` decides: agents say `success` also where the model could not be reached.
    pub fn outcome(&self) -> TurnOutcome {
        match self.subtype.as_str() {
            "success" if !self.is_error => TurnOutcome::Success,
            "error_max_turns" => TurnOutcome::MaxTurns,
            "error_max_budget_usd" => TurnOutcome::MaxBudget,
            "error_max_structured_output_retries" => TurnOutcome::MaxStructuredOutputRetries,
            _ => TurnOutcome::Failed,
        }
    }

    /// The errors, in words: [`TurnResult::errors`], also where they are not all texts.
    pub fn error_texts(&self) -> Vec<String> {
        let others = self.extra.get("errors").and_then(Value::as_array);
        let others = others.into_iter().flatten().map(|error| match error {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        });
        self.errors
            .iter()
            .cloned()
            .chain(others)
            .filter(|text| !text.is_empty())
            .collect()
    }

    /// Whether the turn reports on something in the background, while the user's own turn goes on.
    pub fn is_background(&self) -> bool {
        self.origin
            .as_ref()
            .is_some_and(|origin| origin.kind == "task-notification")
    }
}

#[cfg(test)]
mod tests {
    use crate::{Message, TurnOutcome};

    #[test]
    fn is_error_decides() {
        let cases = [
            (r#""subtype":"success","is_error":false"#, TurnOutcome::Success),
            (r#""subtype":"success","is_error":true"#, TurnOutcome::Failed),
            (r#""subtype":"error_during_execution""#, TurnOutcome::Failed),
            (
                r#""subtype":"error_max_turns","is_error":true"#,
                TurnOutcome::MaxTurns,
            ),
            (r#""subtype":"error_max_budget_usd""#, TurnOutcome::MaxBudget),
            (r#""subtype":null"#, TurnOutcome::Failed),
        ];
        for (fields, outcome) in cases {
            let message = Message::parse(format!(r#"{{"type":"result",{fields}}}"#)).unwrap();
            assert_eq!(message.result().unwrap().outcome(), outcome, "{fields}");
        }
    }

    #[test]
    fn errors_of_any_form_have_words() {
        let message = Message::parse(r#"{"type":"result","errors":["one","",{"code":2}]}"#).unwrap();
        assert_eq!(message.result().unwrap().error_texts(), ["one", r#"{"code":2}"#]);
    }
}
