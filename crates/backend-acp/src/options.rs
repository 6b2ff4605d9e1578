//! The options of a session with an ACP agent: its mode and its model, under the agent's own names.

use serde_json::Value;
use tiller_core::backend::{
    OptionChange, OptionInfo, OptionKind, OptionRefused, OptionRules, Options, SandboxLists, SandboxView,
    Verdict, check_sandbox_option, sandbox_options,
};
use tiller_core::repeated;

use crate::known::LastKnown;

pub(crate) const MODE: &str = "mode";
pub(crate) const MODEL: &str = "model";

/// The longest name of a mode or a model.
const MAX_NAME: usize = 200;

#[derive(Debug)]
pub(crate) struct AcpOptions {
    /// The agent's title, for messages.
    pub(crate) agent: String,
    pub(crate) known: LastKnown,
    /// What its sandboxes have.
    pub(crate) sandbox: SandboxLists,
}

impl OptionRules for AcpOptions {
    fn describe(&self) -> Vec<OptionInfo> {
        // The choices of the session that was opened last. Another folder may have others, so they are not enforced
        // here.
        let known = self.known.get();
        let option = |name: &str, title: &str, choices, grants| OptionInfo {
            name: name.to_owned(),
            title: title.to_owned(),
            kind: OptionKind::String,
            choices,
            default: None,
            live: true,
            grants,
        };
        let mut options = sandbox_options();
        options.insert(0, option(MODE, "Mode", known.modes, true));
        options.insert(1, option(MODEL, "Model", known.models, false));
        options
    }

    fn check(&self, options: Options, _before: Option<&Options>) -> Result<Options, OptionRefused> {
        for (name, value) in options.iter() {
            if let Some(outcome) = check_sandbox_option(name, value) {
                outcome?;
                continue;
            }
            if ![MODE, MODEL].contains(&name) {
                let message = format!("{} does not have the option '{}'.", self.agent, repeated(name));
                return Err(OptionRefused::new(name, message));
            }
            let is_name = |name: &str| {
                !name.is_empty() && name.len() <= MAX_NAME && !name.chars().any(char::is_control)
            };
            if !value.as_str().is_some_and(is_name) {
                let message = format!("The option '{name}' must be a name of at most {MAX_NAME} bytes.");
                return Err(OptionRefused::new(name, message));
            }
        }
        Ok(options)
    }

    fn live_changes(&self, _started: &Options, current: &Options, wanted: &Options) -> Vec<OptionChange> {
        let mut changes = current.changes_to(wanted);
        // The protocol has no request for the agent's own default: that needs a new process.
        changes.retain(|change| {
            [MODE, MODEL].contains(&change.name.as_str())
                && change.value.as_ref().is_some_and(Value::is_string)
        });
        changes
    }

    fn sandbox(&self, options: &Options) -> Option<SandboxView> {
        SandboxView::of(options, || self.sandbox.clone())
    }

    fn verdict(&self, _options: &Options, _tool: &str) -> Verdict {
        Verdict::Ask
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_names() {
        let rules = AcpOptions {
            agent: "Test".to_owned(),
            known: LastKnown::default(),
            sandbox: SandboxLists::default(),
        };
        let check = |name: &str, value: Value| rules.check(Options::default().with(name, value), None);
        assert!(check(MODE, "plan".into()).is_ok() && check(MODEL, "a/b".into()).is_ok());
        for (name, value) in [
            (MODE, Value::from(1)),
            (MODEL, "".into()),
            ("permissionMode", "plan".into()),
        ] {
            assert_eq!(check(name, value).unwrap_err().option, name);
        }
    }
}
