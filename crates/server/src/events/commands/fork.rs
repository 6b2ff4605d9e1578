//! Forks sessions, and rewinds the files that they changed.

use serde::{Deserialize, Serialize};
use ts_rs::TS;
use utoipa::ToSchema;

use super::session_id;
use crate::events::protocol::Ordering;
use crate::events::request::{Context, Refused, Reply};
use crate::underway::Order;

#[derive(Debug, Deserialize, TS, ToSchema)]
#[serde(rename_all = "camelCase")]
#[ts(export_to = "events.ts", optional_fields)]
pub struct SessionFork {
    pub session_id: String,
    #[serde(default)]
    pub title: Option<String>,
}

#[derive(Debug, Serialize, TS, ToSchema)]
#[serde(rename_all = "camelCase")]
#[ts(export_to = "events.ts")]
pub struct SessionForked {
    pub session_id: String,
    pub new_session_id: String,
}

#[derive(Debug, Deserialize, TS, ToSchema)]
#[serde(rename_all = "camelCase")]
#[ts(export_to = "events.ts")]
pub struct SessionRewind {
    pub session_id: String,
    /// The `promptId` of a prompt: files are restored to their state before it.
    pub user_message_id: String,
    /// Only reports what would change.
    pub dry_run: bool,
}

#[derive(Debug, Serialize, TS, ToSchema)]
#[serde(rename_all = "camelCase")]
#[ts(export_to = "events.ts", optional_fields)]
pub struct SessionRewound {
    pub session_id: String,
    pub user_message_id: String,
    pub dry_run: bool,
    pub can_rewind: bool,
    pub files_changed: Vec<String>,
    pub insertions: u32,
    pub deletions: u32,
    /// Why the files can't be restored.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

pub(in crate::events) async fn fork(context: Context, fork: SessionFork) -> Result<Reply, Refused> {
    let id = session_id(&fork.session_id)?;
    let new = context.sessions.fork(id, fork.title.as_deref()).await?;
    Ok(Reply::from(SessionForked {
        session_id: fork.session_id,
        new_session_id: new.to_string(),
    }))
}

/// A dry run changes nothing: later commands don't wait for it.
pub(in crate::events) fn rewind_order(rewind: &SessionRewind) -> Order {
    let ordering = if rewind.dry_run {
        Ordering::Question
    } else {
        Ordering::Command
    };
    ordering.with(&rewind.session_id)
}

pub(in crate::events) async fn rewind(context: Context, rewind: SessionRewind) -> Result<Reply, Refused> {
    let sessions = context.sessions;
    let id = session_id(&rewind.session_id)?;
    let message = rewind.user_message_id;
    // The agent reports changes only for a dry run.
    let mut rewound = sessions.rewind(id, message.clone(), true).await?;
    if !rewind.dry_run && rewound.possible {
        let done = sessions.rewind(id, message.clone(), false).await?;
        (rewound.possible, rewound.error) = (done.possible, done.error);
    }
    Ok(Reply::from(SessionRewound {
        session_id: rewind.session_id,
        user_message_id: message,
        dry_run: rewind.dry_run,
        can_rewind: rewound.possible,
        files_changed: rewound.files_changed,
        insertions: rewound.insertions,
        deletions: rewound.deletions,
        error: rewound.error,
    }))
}
