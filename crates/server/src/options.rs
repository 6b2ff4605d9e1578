//! The options of agents that the public contracts have names for. The doors read and write them here; what they mean is
//! the backend's affair, and whatever else a backend offers goes by its own name.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use tiller_core::{OptionChange, Options};
use ts_rs::TS;
use utoipa::ToSchema;

pub(crate) const ALLOWED_TOOLS: &str = "allowedTools";
pub(crate) const TOOLS: &str = "tools";
pub(crate) const MODEL: &str = "model";
pub(crate) const PERMISSION_MODE: &str = "permissionMode";
pub(crate) const EFFORT: &str = "effort";
pub(crate) const MAX_TURNS: &str = "maxTurns";
pub(crate) const MAX_BUDGET_USD: &str = "maxBudgetUsd";

/// What the agent may do without asking: the permission modes of the contracts.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize, TS, ToSchema)]
#[serde(rename_all = "camelCase")]
#[ts(export_to = "events.ts")]
pub enum PermissionMode {
    #[default]
    Default,
    AcceptEdits,
    Plan,
    BypassPermissions,
}

impl PermissionMode {
    pub(crate) const ALL: &'static [Self] = &[
        Self::Default,
        Self::AcceptEdits,
        Self::Plan,
        Self::BypassPermissions,
    ];

    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Default => "default",
            Self::AcceptEdits => "acceptEdits",
            Self::Plan => "plan",
            Self::BypassPermissions => "bypassPermissions",
        }
    }

    pub(crate) fn parse(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|mode| mode.as_str() == name)
    }

    pub(crate) fn of(options: &Options) -> Self {
        let name = options.text(PERMISSION_MODE);
        name.and_then(Self::parse).unwrap_or_default()
    }

    /// The default is no choice: an agent without such modes takes it, too.
    pub(crate) fn change(self) -> OptionChange {
        let value = match self {
            Self::Default => Value::Null,
            mode => mode.as_str().into(),
        };
        OptionChange::new(PERMISSION_MODE, value)
    }
}

pub(crate) fn text(options: &Options, name: &str) -> Option<String> {
    options.text(name).map(str::to_owned)
}

pub(crate) fn max_turns(options: &Options) -> Option<u32> {
    u32::try_from(options.get(MAX_TURNS)?.as_u64()?).ok()
}

pub(crate) fn max_budget_usd(options: &Options) -> Option<f64> {
    options.get(MAX_BUDGET_USD)?.as_f64()
}

/// The tools that a session is confined to.
pub(crate) fn tools(options: &Options) -> Option<Vec<String>> {
    let tools = options.get(TOOLS)?.as_array()?;
    let names = tools.iter().filter_map(Value::as_str);
    Some(names.map(str::to_owned).collect())
}
