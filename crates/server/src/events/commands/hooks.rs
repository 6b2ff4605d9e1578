//! Hook calls of the agent to the client.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use tiller_core::RawJson;
use ts_rs::TS;
use utoipa::ToSchema;

use super::session_id;
use crate::events::request::{Context, Refused, Reply};
use crate::events::translate;

#[derive(Debug, Deserialize, TS, ToSchema)]
#[serde(rename_all = "camelCase")]
#[ts(export_to = "events.ts")]
pub struct SessionHooks {
    pub session_id: String,
    pub events: Vec<HookEvent>,
}

/// The hook events of an agent.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, TS, ToSchema)]
#[ts(export_to = "events.ts")]
pub enum HookEvent {
    PreToolUse,
    PostToolUse,
    UserPromptSubmit,
    Stop,
    SubagentStop,
    PreCompact,
}

#[derive(Debug, Deserialize, TS, ToSchema)]
#[serde(rename_all = "camelCase")]
#[ts(export_to = "events.ts")]
pub struct HookResponse {
    pub session_id: String,
    pub callback_id: String,
    /// In the agent's own format: `{"continue": true}` and more.
    #[ts(type = "Record<string, unknown>")]
    #[schema(value_type = Object)]
    pub output: Map<String, Value>,
}

#[derive(Debug, Serialize, TS, ToSchema)]
#[serde(rename_all = "camelCase")]
#[ts(export_to = "events.ts", optional_fields)]
pub struct HookCallback {
    pub session_id: String,
    pub callback_id: String,
    pub hook_event: String,
    /// The event's data, in the agent's own format.
    #[ts(type = "Record<string, unknown>")]
    #[schema(value_type = Object)]
    pub input: RawJson,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_use_id: Option<String>,
}

#[derive(Debug, Serialize, TS, ToSchema)]
#[serde(rename_all = "camelCase")]
#[ts(export_to = "events.ts")]
pub struct HookResolved {
    pub session_id: String,
    pub callback_id: String,
}

pub(in crate::events) async fn register(context: Context, hooks: SessionHooks) -> Result<Reply, Refused> {
    let id = session_id(&hooks.session_id)?;
    let events = hooks.events.into_iter().map(translate::hook_name).collect();
    context.sessions.register_hooks(id, events).await?;
    Ok(Reply::Nothing)
}

pub(in crate::events) async fn answer(context: Context, response: HookResponse) -> Result<Reply, Refused> {
    let output = RawJson::of(&response.output).map_err(|error| Refused::Invalid(error.to_string()))?;
    let id = session_id(&response.session_id)?;
    context
        .sessions
        .answer_hook(id, &response.callback_id, output)
        .await?;
    Ok(Reply::Nothing)
}
