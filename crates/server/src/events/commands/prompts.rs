//! Prompts for an existing session, and its queue.

use serde::{Deserialize, Serialize};
use tiller_core::{PromptId, QueueItem};
use ts_rs::TS;
use utoipa::ToSchema;

use super::session_id;
use crate::events::request::{Context, Refused, Reply};
use crate::events::translate;
use crate::events::wire::{QueuedPrompt, UiContext, prompt_id};

#[derive(Debug, Deserialize, TS, ToSchema)]
#[serde(rename_all = "camelCase")]
#[ts(export_to = "events.ts", optional_fields)]
pub struct SessionContinue {
    pub session_id: String,
    pub prompt: String,
    /// The prompt's id, a UUID of the client's choice. A duplicate is acknowledged and runs once.
    #[serde(default, deserialize_with = "prompt_id")]
    #[ts(optional, type = "string")]
    #[schema(value_type = Option<String>, format = "uuid")]
    pub prompt_id: Option<PromptId>,
    #[serde(default)]
    #[ts(optional, as = "Option<Vec<NewAttachment>>")]
    pub attachments: Vec<NewAttachment>,
    #[serde(default)]
    pub context: Option<UiContext>,
    /// In a session that never had a conversation, because its first agent ended too early, this prompt begins one.
    /// Otherwise that is `no_resume_id`.
    #[serde(default)]
    #[ts(optional, as = "Option<bool>")]
    pub afresh: bool,
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
    pub prompts: Vec<QueueEntry>,
    /// The queue that the client expects; refused if it differs.
    #[serde(default)]
    pub expected: Option<Vec<QueueEntry>>,
}

#[derive(Debug, Deserialize, TS, ToSchema)]
#[serde(rename_all = "camelCase")]
#[ts(export_to = "events.ts", optional_fields)]
pub struct FlushQueue {
    pub session_id: String,
    /// As in `session.continue`.
    #[serde(default)]
    #[ts(optional, as = "Option<bool>")]
    pub afresh: bool,
}

/// A queued prompt: by its id, with its current or new text; or by its text alone. A text that is not queued is a new
/// prompt.
#[derive(Debug, Deserialize, TS, ToSchema)]
#[serde(untagged)]
#[ts(export_to = "events.ts")]
pub enum QueueEntry {
    Words(String),
    Prompt(NamedPrompt),
}

#[derive(Debug, Deserialize, TS, ToSchema)]
#[serde(rename_all = "camelCase")]
#[ts(export_to = "events.ts", optional_fields)]
pub struct NamedPrompt {
    #[serde(default, deserialize_with = "prompt_id")]
    #[ts(optional, type = "string")]
    #[schema(value_type = Option<String>, format = "uuid")]
    pub prompt_id: Option<PromptId>,
    pub prompt: String,
}

impl From<QueueEntry> for QueueItem {
    fn from(entry: QueueEntry) -> Self {
        match entry {
            QueueEntry::Words(text) => Self { id: None, text },
            QueueEntry::Prompt(NamedPrompt { prompt_id, prompt }) => Self {
                id: prompt_id,
                text: prompt,
            },
        }
    }
}

#[derive(Debug, Serialize, TS, ToSchema)]
#[serde(rename_all = "camelCase")]
#[ts(export_to = "events.ts")]
pub struct SessionQueue {
    pub session_id: String,
    pub prompts: Vec<String>,
    /// The same prompts with their ids.
    #[ts(optional, as = "Option<Vec<QueuedPrompt>>")]
    pub items: Vec<QueuedPrompt>,
}

pub(in crate::events) async fn send(context: Context, more: SessionContinue) -> Result<Reply, Refused> {
    let id = session_id(&more.session_id)?;
    // An unknown session is reported first: it is the more serious mistake.
    context.sessions.find(id).await?;
    let mut prompt = translate::prompt(more.prompt_id, more.prompt, more.attachments, more.context)?;
    prompt.afresh = more.afresh;
    let accepted = context.sessions.prompt(id, prompt).await?;
    Ok(if accepted.duplicate {
        Reply::Duplicate(None, id)
    } else {
        Reply::Nothing
    })
}

pub(in crate::events) async fn replace_queue(
    context: Context,
    queue: ReplaceQueue,
) -> Result<Reply, Refused> {
    let id = session_id(&queue.session_id)?;
    let items = |entries: Vec<QueueEntry>| entries.into_iter().map(QueueItem::from).collect();
    let expected = queue.expected.map(items);
    let sessions = context.sessions;
    sessions.replace_queue(id, items(queue.prompts), expected).await?;
    Ok(Reply::Nothing)
}

pub(in crate::events) async fn flush(context: Context, flush: FlushQueue) -> Result<Reply, Refused> {
    let id = session_id(&flush.session_id)?;
    context.sessions.flush(id, flush.afresh).await?;
    Ok(Reply::Nothing)
}
