//! The list of sessions, and the entry of a session in it.

use serde::{Deserialize, Serialize};
use tiller_core::{CommandError, InvalidCursor, ListFilter, ListedSession, SessionId, SessionPage, Sessions};
use ts_rs::TS;
use utoipa::ToSchema;

use crate::events::request::{Context, Handled, Refused, Reply, Request};
use crate::events::socket::Connection;
use crate::events::translate::{self, Protection};
use crate::events::wire::SessionInfo;
use crate::underway::Order;

#[derive(Debug, Deserialize, TS, ToSchema)]
#[serde(rename_all = "camelCase")]
#[ts(export_to = "events.ts", optional_fields)]
pub struct SessionList {
    /// The maximum number of sessions in the answer. Absent: all.
    #[serde(default)]
    pub limit: Option<u32>,
    /// The start of the page: the `nextCursor` of the previous page.
    #[serde(default)]
    pub cursor: Option<String>,
    /// Absent: all sessions.
    #[serde(default)]
    pub only: Option<ListOnly>,
}

/// Which sessions a list is limited to.
#[derive(Clone, Copy, Debug, Deserialize, TS, ToSchema)]
#[serde(rename_all = "lowercase")]
#[ts(export_to = "events.ts")]
pub enum ListOnly {
    /// Those in which a decision waits.
    Waiting,
    /// Those in which a turn runs.
    Running,
    /// Those that are pinned, in a group, tagged, or moved.
    Arranged,
}

#[derive(Debug, Serialize, TS, ToSchema)]
#[serde(rename_all = "camelCase")]
#[ts(export_to = "events.ts", optional_fields)]
pub struct SessionListed {
    pub sessions: Vec<SessionInfo>,
    /// The start of the next page. Absent: this is the last page.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}

#[derive(Debug, Serialize, TS, ToSchema)]
#[serde(rename_all = "camelCase")]
#[ts(export_to = "events.ts")]
pub struct SessionUpdated {
    pub session: Box<SessionInfo>,
}

pub(in crate::events) fn list(connection: &mut Connection, request: Request, list: SessionList) -> Handled {
    let work = read(connection.context(&request.origin), list);
    connection.begin(Order::Beside, request, work);
    Handled::Underway
}

async fn read(context: Context, list: SessionList) -> Result<Reply, Refused> {
    let cursor = list.cursor.as_deref().filter(|cursor| !cursor.is_empty());
    let cursor = cursor.map(str::parse).transpose();
    let cursor = cursor.map_err(|error: InvalidCursor| Refused::Invalid(error.to_string()))?;
    if list.limit == Some(0) {
        return Err(Refused::Invalid("'limit' must be at least 1.".to_owned()));
    }
    let only = list.only.map(|only| match only {
        ListOnly::Waiting => ListFilter::Waiting,
        ListOnly::Running => ListFilter::Running,
        ListOnly::Arranged => ListFilter::ArrangedBy(context.sessions.viewer().key.clone()),
    });
    let page = context.sessions.list(only, cursor, list.limit).await?;
    Ok(Reply::Sessions(page))
}

/// All sessions, for a client that may have missed changes.
pub(in crate::events) async fn all(sessions: &Sessions) -> Result<SessionListed, CommandError> {
    let page = sessions.list(None, None, None).await?;
    Ok(listed(sessions, page))
}

/// A page as it is sent: with the changes since it was read.
pub(in crate::events) fn listed(sessions: &Sessions, mut page: SessionPage) -> SessionListed {
    sessions.add_live_state(&mut page.sessions);
    let not_shielded = sessions.not_shielded();
    let entries = page.sessions.into_iter().map(|session| match session {
        ListedSession::Readable { record, pending } => {
            let (agent, usage) = (sessions.agent_status(record.id), sessions.usage(record.id));
            let protection = Protection {
                not_shielded: not_shielded.clone(),
                sandbox: sessions.sandbox_of(&record),
            };
            translate::session(*record, pending, agent, usage, protection)
        }
        ListedSession::Damaged(damaged) => translate::damaged_session(damaged),
    });
    SessionListed {
        sessions: entries.collect(),
        next_cursor: page.next.map(|next| next.to_string()),
    }
}

/// A session's entry in the list. `None` if it was deleted in the meantime, or can't be read.
pub(in crate::events) async fn entry(sessions: &Sessions, id: SessionId) -> Option<SessionUpdated> {
    let (record, pending) = sessions.find(id).await.ok()?;
    let protection = Protection {
        not_shielded: sessions.not_shielded(),
        sandbox: sessions.sandbox_of(&record),
    };
    let entry = translate::session(
        record,
        pending.len(),
        sessions.agent_status(id),
        sessions.usage(id),
        protection,
    );
    Some(SessionUpdated {
        session: Box::new(entry),
    })
}
