//! The list of sessions, and one session's entry in it.

use serde::{Deserialize, Serialize};
use tiller_core::{SessionId, Sessions};
use ts_rs::TS;
use utoipa::ToSchema;

use crate::events::request::{Handled, Request};
use crate::events::socket::Connection;
use crate::events::translate;
use crate::events::wire::SessionInfo;

#[derive(Debug, Deserialize, TS, ToSchema)]
#[serde(rename_all = "camelCase")]
#[ts(export_to = "events.ts", optional_fields)]
pub struct SessionList {}

#[derive(Debug, Serialize, TS, ToSchema)]
#[serde(rename_all = "camelCase")]
#[ts(export_to = "events.ts")]
pub struct SessionListed {
    pub sessions: Vec<SessionInfo>,
}

#[derive(Debug, Serialize, TS, ToSchema)]
#[serde(rename_all = "camelCase")]
#[ts(export_to = "events.ts")]
pub struct SessionUpdated {
    pub session: Box<SessionInfo>,
}

pub(in crate::events) fn list(
    connection: &mut Connection,
    _: Request,
    SessionList {}: SessionList,
) -> Handled {
    Handled::Answered(listed(&connection.sessions).into())
}

pub(in crate::events) fn listed(sessions: &Sessions) -> SessionListed {
    let entries = sessions.list().into_iter().map(|(record, pending)| {
        let agent = sessions.agent_status(record.id);
        let usage = sessions.usage(record.id);
        translate::session(record, pending, agent, usage)
    });
    SessionListed {
        sessions: entries.collect(),
    }
}

/// A session's entry in the list. `None` if it was deleted meanwhile.
pub(in crate::events) fn entry(sessions: &Sessions, id: SessionId) -> Option<SessionUpdated> {
    let (record, pending) = sessions.find(id)?;
    let entry = translate::session(
        record,
        pending.len(),
        sessions.agent_status(id),
        sessions.usage(id),
    );
    Some(SessionUpdated {
        session: Box::new(entry),
    })
}
