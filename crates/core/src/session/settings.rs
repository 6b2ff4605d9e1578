//! What the user chose for a session, and how that is changed.

use super::state::{Approval, PermissionMode};

/// What the user chose for a session.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// Comma-separated tools and rules that run without asking.
    pub allowed_tools: Option<String>,
    /// The only tools that it has, which then run without asking. `None`: the agent's usual ones.
    pub tools: Option<Vec<String>>,
    pub model: Option<String>,
    pub permission_mode: PermissionMode,
    pub approval: Approval,
    /// How hard the model tries, in the agent's own words.
    pub effort: Option<String>,
    /// How often the model may be called in one turn.
    pub max_turns: Option<u32>,
    /// What the conversation may cost.
    pub max_budget_usd: Option<f64>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            allowed_tools: None,
            tools: None,
            model: None,
            permission_mode: PermissionMode::Default,
            approval: Approval::Ask,
            effort: None,
            max_turns: None,
            max_budget_usd: None,
        }
    }
}

/// Other settings. The outer `None` leaves a thing as it is; `Some(None)` is its default.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SettingsPatch {
    pub allowed_tools: Option<Option<String>>,
    pub tools: Option<Option<Vec<String>>>,
    pub model: Option<Option<String>>,
    pub permission_mode: Option<PermissionMode>,
    pub approval: Option<Approval>,
    pub effort: Option<Option<String>>,
    pub max_turns: Option<Option<u32>>,
    pub max_budget_usd: Option<Option<f64>>,
}

impl SettingsPatch {
    /// The settings with these changes.
    pub fn applied(&self, before: &Settings) -> Settings {
        fn or<T: Clone>(change: Option<&T>, before: &T) -> T {
            change.unwrap_or(before).clone()
        }
        Settings {
            allowed_tools: or(self.allowed_tools.as_ref(), &before.allowed_tools),
            tools: or(self.tools.as_ref(), &before.tools),
            model: or(self.model.as_ref(), &before.model),
            permission_mode: self.permission_mode.unwrap_or(before.permission_mode),
            approval: self.approval.unwrap_or(before.approval),
            effort: or(self.effort.as_ref(), &before.effort),
            max_turns: self.max_turns.unwrap_or(before.max_turns),
            max_budget_usd: self.max_budget_usd.unwrap_or(before.max_budget_usd),
        }
    }
}
