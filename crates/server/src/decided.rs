//! How the permissions of tool calls were decided, as the event API and the history tell it.

use serde::{Deserialize, Serialize};
use tiller_core::{Decided, RawJson};
use ts_rs::TS;
use utoipa::ToSchema;

#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize, TS, ToSchema)]
#[serde(rename_all = "lowercase")]
#[ts(export_to = "events.ts")]
pub enum Behavior {
    Allow,
    Deny,
    /// Withdrawn without an answer: the turn was stopped or the agent ended.
    Withdrawn,
}

impl From<tiller_core::Behavior> for Behavior {
    fn from(behavior: tiller_core::Behavior) -> Self {
        match behavior {
            tiller_core::Behavior::Allow => Self::Allow,
            tiller_core::Behavior::Deny => Self::Deny,
            tiller_core::Behavior::Withdrawn => Self::Withdrawn,
        }
    }
}

/// How the permission of a tool call was decided.
#[derive(Debug, Serialize, TS, ToSchema)]
#[serde(rename_all = "camelCase")]
#[ts(export_to = "events.ts", optional_fields)]
pub struct DecidedCall {
    pub tool_use_id: String,
    pub behavior: Behavior,
    /// What ran, where a person changed what was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[ts(optional, type = "Record<string, unknown>")]
    #[schema(value_type = Option<Object>)]
    pub edited_input: Option<RawJson>,
}

impl From<Decided> for DecidedCall {
    fn from(decided: Decided) -> Self {
        Self {
            tool_use_id: decided.tool_use_id,
            behavior: decided.behavior.into(),
            edited_input: decided.edited,
        }
    }
}
