//! The agent options that several doors have names for. The backend defines what they mean. The event API's own list is
//! in `events/settings.rs`.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use tiller_core::{OptionChange, Options};
use ts_rs::TS;
use utoipa::ToSchema;

pub(crate) const TOOLS: &str = "tools";
pub(crate) const MODEL: &str = "model";
pub(crate) const PERMISSION_MODE: &str = "permissionMode";
pub(crate) const MAX_TURNS: &str = "maxTurns";

/// What the agent may do without asking: the permission modes of the contracts.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize, TS, ToSchema)]
#[serde(rename_all = "camelCase")]
#[ts(export_to = "events.ts")]
pub enum PermissionMode {
    #[default]
    Default,
    AcceptEdits,
    Plan,
    /// A model decides what needs asking.
    Auto,
    BypassPermissions,
}

impl PermissionMode {
    pub(crate) const ALL: &'static [Self] = &[
        Self::Default,
        Self::AcceptEdits,
        Self::Plan,
        Self::Auto,
        Self::BypassPermissions,
    ];

    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Default => "default",
            Self::AcceptEdits => "acceptEdits",
            Self::Plan => "plan",
            Self::Auto => "auto",
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

    /// The default mode is not stored as an option, so that agents without such modes accept it, too.
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

/// The tools that a session is limited to.
pub(crate) fn tools(options: &Options) -> Option<Vec<String>> {
    let tools = options.get(TOOLS)?.as_array()?;
    let names = tools.iter().filter_map(Value::as_str);
    Some(names.map(str::to_owned).collect())
}
