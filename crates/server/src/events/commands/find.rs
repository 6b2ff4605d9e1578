//! Looking for words in a session's whole log.

use serde::{Deserialize, Serialize};
use tiller_core::Match;
use ts_rs::TS;
use utoipa::ToSchema;

use super::session_id;
use crate::events::request::{Context, Refused, Reply};

#[derive(Debug, Deserialize, TS, ToSchema)]
#[serde(rename_all = "camelCase")]
#[ts(export_to = "events.ts")]
pub struct SessionFind {
    pub session_id: String,
    /// The words, whatever the case of their letters.
    pub query: String,
}

#[derive(Debug, Serialize, TS, ToSchema)]
#[serde(rename_all = "camelCase")]
#[ts(export_to = "events.ts")]
pub struct SessionFound {
    pub session_id: String,
    pub query: String,
    /// In the order of the log.
    pub matches: Vec<FoundEntry>,
    /// There are more than were told.
    pub more: bool,
}

/// A prompt, an answer, a tool call or its result in which the words were found.
#[derive(Debug, Serialize, TS, ToSchema)]
#[serde(rename_all = "camelCase")]
#[ts(export_to = "events.ts", optional_fields)]
pub struct FoundEntry {
    #[ts(type = "number")]
    pub seq: u64,
    /// The tool call's id: a call and its result belong together.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_use_id: Option<String>,
}

pub(in crate::events) async fn find(context: Context, find: SessionFind) -> Result<Reply, Refused> {
    let id = session_id(&find.session_id)?;
    let matches = context.sessions.find_words(id, &find.query).await?;
    let entry = |Match { seq, tool_use_id }| FoundEntry { seq, tool_use_id };
    Ok(Reply::from(SessionFound {
        session_id: find.session_id,
        query: find.query,
        matches: matches.found.into_iter().map(entry).collect(),
        more: matches.more,
    }))
}
