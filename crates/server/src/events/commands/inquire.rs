//! Questions to a session's agent about itself.

use serde::{Deserialize, Serialize};
use tiller_core::{CommandError, RawJson};
use ts_rs::TS;
use utoipa::ToSchema;

use super::session_id;
use crate::events::protocol::Ordering;
use crate::events::request::{Context, Handled, Refused, Reply, Request};
use crate::events::socket::Connection;
use crate::events::translate;

#[derive(Debug, Deserialize, TS, ToSchema)]
#[serde(rename_all = "camelCase")]
#[ts(export_to = "events.ts", optional_fields)]
pub struct SessionInquire {
    pub session_id: String,
    /// Returned with the answer.
    pub request_id: String,
    pub subject: Subject,
    #[serde(default)]
    pub query: Option<String>,
}

/// The subject of a question to a session's agent.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize, TS, ToSchema)]
#[serde(rename_all = "camelCase")]
#[ts(export_to = "events.ts")]
pub enum Subject {
    ContextUsage,
    McpStatus,
    /// Files that match `query`, to mention in a prompt.
    FileSuggestions,
    Commands,
    Models,
    PermissionRules,
    Hooks,
    Usage,
    Settings,
}

#[derive(Debug, Serialize, TS, ToSchema)]
#[serde(rename_all = "camelCase")]
#[ts(export_to = "events.ts", optional_fields)]
pub struct SessionAnswer {
    pub session_id: String,
    pub request_id: String,
    pub subject: Subject,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[ts(optional, type = "unknown")]
    #[schema(value_type = Option<serde_json::Value>)]
    pub data: Option<RawJson>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

impl SessionAnswer {
    fn to(inquire: SessionInquire, data: Option<RawJson>, error: Option<String>) -> Self {
        Self {
            session_id: inquire.session_id,
            request_id: inquire.request_id,
            subject: inquire.subject,
            data,
            error,
        }
    }
}

pub(in crate::events) fn inquire(
    connection: &mut Connection,
    request: Request,
    inquire: SessionInquire,
) -> Handled {
    if session_id(&inquire.session_id).is_ok_and(|id| !connection.may_ask(id)) {
        let error = "The agent has not answered earlier questions yet. Try again later.".to_owned();
        let refused = SessionAnswer::to(inquire, None, Some(error));
        return Handled::Answered(refused.into());
    }
    let order = Ordering::Question.with(&inquire.session_id);
    let work = execute(connection.context(&request.origin), inquire);
    connection.begin(order, request, work);
    Handled::Underway
}

async fn execute(context: Context, mut inquire: SessionInquire) -> Result<Reply, Refused> {
    let id = session_id(&inquire.session_id)?;
    let inquiry = translate::inquiry(inquire.subject, inquire.query.take());
    let (data, error) = match context.sessions.inquire(id, inquiry).await {
        Ok(data) => (Some(data), None),
        Err(failed @ (CommandError::Inquiry(_) | CommandError::Unsupported { .. })) => {
            (None, Some(failed.to_string()))
        }
        Err(error) => return Err(error.into()),
    };
    Ok(Reply::from(SessionAnswer::to(inquire, data, error)))
}
