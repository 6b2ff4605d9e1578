//! Reads a session's log: a page of its messages, or all events after a number and then live.

use serde::Deserialize;
use ts_rs::TS;
use utoipa::ToSchema;

use super::session_id;
use crate::events::reading::Read;
use crate::events::request::{Handled, Refused, Request};
use crate::events::socket::Connection;
use crate::events::translate;

/// `afterSeq` with `limit`: the first ones after it. `beforeSeq` with `limit`: the last ones before it. `limit` alone:
/// the last ones.
#[derive(Debug, Deserialize, TS, ToSchema)]
#[serde(rename_all = "camelCase")]
#[ts(export_to = "events.ts", optional_fields)]
pub struct HistoryRequest {
    pub session_id: String,
    #[serde(default)]
    #[ts(optional, type = "number")]
    pub after_seq: Option<u64>,
    #[serde(default)]
    #[ts(optional, type = "number")]
    pub before_seq: Option<u64>,
    #[serde(default)]
    pub limit: Option<u32>,
}

#[derive(Debug, Deserialize, TS, ToSchema)]
#[serde(rename_all = "camelCase")]
#[ts(export_to = "events.ts", optional_fields)]
pub struct Subscribe {
    pub session_id: String,
    #[serde(default)]
    #[ts(optional, type = "number")]
    pub after_seq: Option<u64>,
}

pub(in crate::events) fn history(
    connection: &mut Connection,
    request: Request,
    wanted: HistoryRequest,
) -> Result<Handled, Refused> {
    let page = translate::page(&wanted)?;
    let id = session_id(&wanted.session_id)?;
    connection.read_in_turn(id, Read::History(page), request);
    Ok(Handled::Underway)
}

pub(in crate::events) fn subscribe(
    connection: &mut Connection,
    request: Request,
    subscribe: Subscribe,
) -> Result<Handled, Refused> {
    let read = Read::Replay {
        after: subscribe.after_seq.unwrap_or(0),
        certain: false,
    };
    let id = session_id(&subscribe.session_id)?;
    connection.read_in_turn(id, read, request);
    Ok(Handled::Underway)
}
