//! Forks sessions, and rewinds the files that they changed.

use serde::{Deserialize, Serialize};
use tiller_core::RewindScope;
use ts_rs::TS;
use utoipa::ToSchema;

use super::session_id;
use crate::events::protocol::Ordering;
use crate::events::request::{Context, Refused, Reply};
use crate::events::wire::SessionRef;
use crate::underway::Order;

#[derive(Debug, Deserialize, TS, ToSchema)]
#[serde(rename_all = "camelCase")]
#[ts(export_to = "events.ts", optional_fields)]
pub struct SessionFork {
    pub session_id: String,
    #[serde(default)]
    pub title: Option<String>,
    /// The `seq` of the last message that the fork begins with. Absent: all of them.
    #[serde(default)]
    #[ts(optional, type = "number")]
    pub at_seq: Option<u64>,
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
#[ts(export_to = "events.ts", optional_fields)]
pub struct SessionRewind {
    pub session_id: String,
    /// The `promptId` of a prompt: files are restored to their state before it.
    pub user_message_id: String,
    /// Only reports what would change.
    pub dry_run: bool,
    /// The conversation goes back to before that prompt. Until the next prompt, `session.unrewind` undoes it.
    #[serde(default)]
    #[ts(optional, as = "Option<bool>")]
    pub conversation: bool,
    /// Files go back, too: true unless said otherwise.
    #[serde(default = "yes")]
    #[ts(optional, as = "Option<bool>")]
    pub files: bool,
}

fn yes() -> bool {
    true
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
    /// With `conversation`: how many prompts are put away, with all that followed them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prompts: Option<u32>,
    /// With `conversation`: the files that an undo would not bring back.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[ts(optional, as = "Option<Vec<String>>")]
    pub not_saved: Vec<String>,
}

#[derive(Debug, Serialize, TS, ToSchema)]
#[serde(rename_all = "camelCase")]
#[ts(export_to = "events.ts")]
pub struct SessionUnrewound {
    pub session_id: String,
    /// The files that are back.
    pub restored: Vec<String>,
    /// The files that were changed since and stay as they are.
    pub left: Vec<String>,
}

pub(in crate::events) async fn fork(context: Context, fork: SessionFork) -> Result<Reply, Refused> {
    let id = session_id(&fork.session_id)?;
    let new = context
        .sessions
        .fork(id, fork.title.as_deref(), fork.at_seq)
        .await?;
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
    let id = session_id(&rewind.session_id)?;
    let message = rewind.user_message_id;
    let scope = match (rewind.conversation, rewind.files) {
        (true, true) => RewindScope::Both,
        (true, false) => RewindScope::Conversation,
        (false, true) => RewindScope::Files,
        (false, false) => {
            let reason = "Say what to rewind: 'conversation', 'files' or both.";
            return Err(Refused::Invalid(reason.to_owned()));
        }
    };
    let outcome = context
        .sessions
        .rewind(id, message.clone(), scope, rewind.dry_run);
    let outcome = outcome.await?;
    let files = outcome.files.unwrap_or_default();
    Ok(Reply::from(SessionRewound {
        session_id: rewind.session_id,
        user_message_id: message,
        dry_run: rewind.dry_run,
        can_rewind: files.possible,
        files_changed: files.files_changed,
        insertions: files.insertions,
        deletions: files.deletions,
        error: files.error,
        prompts: rewind.conversation.then_some(outcome.prompts),
        not_saved: outcome.not_saved,
    }))
}

pub(in crate::events) async fn undo_rewind(context: Context, session: SessionRef) -> Result<Reply, Refused> {
    let outcome = context
        .sessions
        .undo_rewind(session_id(&session.session_id)?)
        .await?;
    Ok(Reply::from(SessionUnrewound {
        session_id: session.session_id,
        restored: outcome.restored,
        left: outcome.left,
    }))
}
