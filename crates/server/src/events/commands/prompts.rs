//! Prompts for a session that is there, and those that are queued.

use serde::{Deserialize, Serialize};
use tiller_core::{CommandError, QueueItem};
use ts_rs::TS;
use utoipa::ToSchema;

use super::session_id;
use crate::events::request::{Context, Refused, Reply};
use crate::events::translate;
use crate::events::wire::{SessionRef, UiContext};

#[derive(Debug, Deserialize, TS, ToSchema)]
#[serde(rename_all = "camelCase")]
#[ts(export_to = "events.ts", optional_fields)]
pub struct SessionContinue {
    pub session_id: String,
    pub prompt: String,
    #[serde(default)]
    #[ts(optional, as = "Option<Vec<NewAttachment>>")]
    pub attachments: Vec<NewAttachment>,
    #[serde(default)]
    pub context: Option<UiContext>,
}

/// An image: PNG, JPEG, GIF or WebP, at most 5 MiB, at most 20 with one prompt.
#[derive(Debug, Deserialize, TS, ToSchema)]
#[serde(rename_all = "camelCase")]
#[ts(export_to = "events.ts", optional_fields)]
pub struct NewAttachment {
    pub media_type: String,
    /// Base64.
    pub data: String,
    #[serde(default)]
    pub name: Option<String>,
}

#[derive(Debug, Deserialize, TS, ToSchema)]
#[serde(rename_all = "camelCase")]
#[ts(export_to = "events.ts", optional_fields)]
pub struct ReplaceQueue {
    pub session_id: String,
    pub prompts: Vec<String>,
    /// What the client believes to be queued; refused if something else is.
    #[serde(default)]
    pub expected: Option<Vec<String>>,
}

#[derive(Debug, Serialize, TS, ToSchema)]
#[serde(rename_all = "camelCase")]
#[ts(export_to = "events.ts")]
pub struct SessionQueue {
    pub session_id: String,
    pub prompts: Vec<String>,
}

pub(in crate::events) async fn send(context: Context, more: SessionContinue) -> Result<Reply, Refused> {
    let id = session_id(&more.session_id)?;
    // An unknown session is the graver mistake, so it is reported first.
    context.sessions.find(id).ok_or(CommandError::UnknownSession)?;
    let prompt = translate::prompt(more.prompt, more.attachments, more.context)?;
    context.sessions.prompt(id, prompt).await?;
    Ok(Reply::Nothing)
}

pub(in crate::events) async fn replace_queue(
    context: Context,
    queue: ReplaceQueue,
) -> Result<Reply, Refused> {
    let id = session_id(&queue.session_id)?;
    let items = |texts: Vec<String>| {
        let item = |text| QueueItem { id: None, text };
        texts.into_iter().map(item).collect()
    };
    let expected = queue.expected.map(items);
    let sessions = context.sessions;
    sessions.replace_queue(id, items(queue.prompts), expected).await?;
    Ok(Reply::Nothing)
}

pub(in crate::events) async fn flush(context: Context, session: SessionRef) -> Result<Reply, Refused> {
    context.sessions.flush(session_id(&session.session_id)?).await?;
    Ok(Reply::Nothing)
}
