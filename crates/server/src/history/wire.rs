//! The answers of the history's routes, beyond the types of the history crate.

use serde::{Deserialize, Serialize};
use tiller_history::{Change, EntryPage, Facets, MessagePage, ProjectList, SessionPage};
use ts_rs::TS;
use utoipa::ToSchema;

use crate::decided::DecidedCall;

/// `GET /api/history/projects`
#[derive(Debug, Serialize, TS, ToSchema)]
#[ts(export_to = "history.ts")]
pub struct HistoryProjects {
    #[serde(flatten)]
    pub list: ProjectList,
    /// After how many days the CLI deletes transcripts.
    pub retention_days: u32,
}

/// `GET /api/history/sessions`
#[derive(Debug, Serialize, TS, ToSchema)]
#[ts(export_to = "history.ts")]
pub struct HistorySessions {
    #[serde(flatten)]
    pub page: SessionPage,
    /// Values that the list can be filtered by.
    pub facets: Facets,
}

/// `GET /api/history/sessions/{id}`
#[derive(Debug, Serialize, TS, ToSchema)]
#[ts(export_to = "history.ts")]
pub struct HistoryMessages {
    #[serde(flatten)]
    pub page: MessagePage,
    /// The command that continues the conversation in a terminal.
    pub resume_command: String,
}

/// `GET /api/history/sessions/{id}?as=entries`
#[derive(Debug, Serialize, TS, ToSchema)]
#[ts(export_to = "history.ts")]
pub struct HistoryEntries {
    #[serde(flatten)]
    pub page: EntryPage,
    /// The command that continues the conversation in a terminal.
    pub resume_command: String,
    /// The permissions that were not simply allowed as they were asked for, where the conversation was had in Tiller.
    pub decided: Vec<DecidedCall>,
}

/// An event of `GET /api/history/live`.
#[derive(Debug, Serialize, TS, ToSchema)]
#[ts(export_to = "history.ts")]
pub struct HistoryChanges {
    pub changes: Vec<Change>,
}

/// `PUT /api/history/vault`
#[derive(Debug, Deserialize, TS, ToSchema)]
#[serde(deny_unknown_fields)]
#[ts(export_to = "history.ts")]
pub struct VaultSetting {
    pub enabled: bool,
}

/// `GET /api/history/vault`
#[derive(Debug, Serialize, TS, ToSchema)]
#[ts(export_to = "history.ts")]
pub struct VaultState {
    pub enabled: bool,
    /// Whether a round of archiving is running or about to begin.
    pub archiving: bool,
    /// After how many days the CLI deletes transcripts.
    pub retention_days: u32,
    /// Sessions in the vault, and the bytes they take.
    pub stored_sessions: usize,
    pub stored_bytes: u64,
    /// Sessions that exist only in the vault, newest first.
    #[serde(flatten)]
    pub page: SessionPage,
}
