//! Answers to decisions.

use serde::Deserialize;
use serde_json::{Map, Value};
use ts_rs::TS;
use utoipa::ToSchema;

use super::session_id;
use crate::events::request::{Context, Refused, Reply};
use crate::events::translate;

/// Refers to the decision by `toolUseId`, by `requestId`, or by both, which must then belong together.
#[derive(Debug, Deserialize, TS, ToSchema)]
#[serde(rename_all = "camelCase")]
#[ts(export_to = "events.ts", optional_fields)]
pub struct PermissionResponse {
    pub session_id: String,
    #[serde(default)]
    pub tool_use_id: Option<String>,
    #[serde(default)]
    pub request_id: Option<String>,
    pub result: PermissionResult,
    /// The SHA-256, in hex, of the input's JSON as it was shown. If the pending input differs, the answer is refused.
    #[serde(default)]
    pub shown: Option<String>,
}

#[derive(Debug, Deserialize, TS, ToSchema)]
#[serde(tag = "behavior", rename_all = "lowercase", rename_all_fields = "camelCase")]
#[ts(export_to = "events.ts", optional_fields)]
pub enum PermissionResult {
    Allow {
        /// Absent: the tool runs with the input that was shown.
        #[serde(default)]
        #[ts(optional, type = "Record<string, unknown>")]
        #[schema(value_type = Option<Object>)]
        updated_input: Option<Map<String, Value>>,
        /// Rules to keep, from the request's `suggestions`.
        #[serde(default)]
        #[ts(optional, type = "Array<unknown>")]
        #[schema(value_type = Option<Vec<Object>>)]
        updated_permissions: Option<Vec<Value>>,
    },
    Deny {
        #[serde(default)]
        message: Option<String>,
        /// Also ends the turn.
        #[serde(default)]
        interrupt: Option<bool>,
    },
}

pub(in crate::events) async fn answer(
    context: Context,
    response: PermissionResponse,
) -> Result<Reply, Refused> {
    let decision = translate::decision(&response)?;
    let answer = translate::answer(response.result)?;
    let id = session_id(&response.session_id)?;
    let shown = response.shown.as_deref();
    context.sessions.answer_shown(id, decision, answer, shown).await?;
    Ok(Reply::Nothing)
}
