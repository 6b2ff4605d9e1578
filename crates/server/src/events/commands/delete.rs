//! Deletes a session, at once or later, and cancels a deletion.

use serde::{Deserialize, Serialize};
use tiller_core::Timestamp;
use ts_rs::TS;
use utoipa::ToSchema;

use super::session_id;
use crate::events::protocol::Ordering;
use crate::events::request::{Context, Handled, Purpose, Refused, Reply, Request};
use crate::events::socket::Connection;
use crate::events::wire::SessionRef;

#[derive(Debug, Deserialize, TS, ToSchema)]
#[serde(rename_all = "camelCase")]
#[ts(export_to = "events.ts", optional_fields)]
pub struct SessionDelete {
    pub session_id: String,
    /// Delays the deletion by this many milliseconds, during which it can be cancelled. The session's agent is ended at
    /// once.
    #[serde(default)]
    pub after_ms: Option<u32>,
}

#[derive(Debug, Serialize, TS, ToSchema)]
#[serde(rename_all = "camelCase")]
#[ts(export_to = "events.ts")]
pub struct SessionDeleted {
    pub session_id: String,
}

pub(in crate::events) fn delete(
    connection: &mut Connection,
    request: Request,
    delete: SessionDelete,
) -> Handled {
    let order = Ordering::Command.with(&delete.session_id);
    let purpose = session_id(&delete.session_id).map_or(Purpose::Command, Purpose::Delete);
    let work = execute(connection.context(&request.origin), delete);
    connection.begin_with(order, request, purpose, work);
    Handled::Underway
}

async fn execute(context: Context, delete: SessionDelete) -> Result<Reply, Refused> {
    let sessions = context.sessions;
    let session_id = delete.session_id;
    let found = super::session_id(&session_id).ok();
    let found = match found {
        Some(id) if sessions.exists(id).await? => Some(id),
        _ => None,
    };
    let Some(id) = found else {
        return Ok(Reply::from(SessionDeleted { session_id }));
    };
    match delete.after_ms.filter(|after| *after > 0) {
        None => {
            sessions.delete(id).await?;
            Ok(Reply::Deleted(session_id))
        }
        Some(after) => {
            let at = Timestamp(Timestamp::now().0 + i64::from(after));
            sessions.delete_at(id, at).await?;
            Ok(Reply::Nothing)
        }
    }
}

pub(in crate::events) async fn undelete(context: Context, session: SessionRef) -> Result<Reply, Refused> {
    context
        .sessions
        .undelete(session_id(&session.session_id)?)
        .await?;
    Ok(Reply::Nothing)
}
