//! Types that several events of the event API share, as its contract defines them.
//!
//! A payload that belongs to one command is in that command's file, and the fields of settings are in `settings`.
//! `translate` has most conversions to and from the core's types.

mod server;

use serde::{Deserialize, Deserializer, Serialize};
use tiller_core::PromptId;
use ts_rs::TS;
use utoipa::ToSchema;

pub(super) use crate::decided::Behavior;
pub(super) use crate::options::PermissionMode;
pub(super) use server::*;

/// Who answers when the agent asks for permission.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize, TS, ToSchema)]
#[serde(rename_all = "lowercase")]
#[ts(export_to = "events.ts")]
pub enum Approval {
    /// The user, for every tool that the agent asks about.
    Ask,
    /// Everything is allowed except questions, plans and forms.
    Auto,
}

impl From<Approval> for tiller_core::Approval {
    fn from(approval: Approval) -> Self {
        match approval {
            Approval::Ask => Self::Ask,
            Approval::Auto => Self::Auto,
        }
    }
}

impl From<tiller_core::Approval> for Approval {
    fn from(approval: tiller_core::Approval) -> Self {
        match approval {
            tiller_core::Approval::Ask => Self::Ask,
            tiller_core::Approval::Auto => Self::Auto,
        }
    }
}

#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize, TS, ToSchema)]
#[serde(rename_all = "lowercase")]
#[ts(export_to = "events.ts")]
pub enum SessionStatus {
    Idle,
    Running,
    Completed,
    Error,
}

/// Refers to a session.
#[derive(Debug, Deserialize, TS, ToSchema)]
#[serde(rename_all = "camelCase")]
#[ts(export_to = "events.ts")]
pub struct SessionRef {
    pub session_id: String,
}

/// What the user was looking at while writing a prompt.
#[derive(Clone, Debug, Deserialize, Serialize, TS, ToSchema)]
#[serde(rename_all = "camelCase")]
#[ts(export_to = "events.ts", optional_fields)]
pub struct UiContext {
    #[serde(default)]
    pub mode: String,
    #[serde(default)]
    pub current_view: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub selected_element: Option<SelectedElement>,
    /// A file, or lines of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub selected_file: Option<SelectedFile>,
}

#[derive(Clone, Debug, Deserialize, Serialize, TS, ToSchema)]
#[serde(rename_all = "camelCase")]
#[ts(export_to = "events.ts")]
pub struct SelectedElement {
    #[serde(default)]
    pub tag_name: String,
    #[serde(default)]
    pub selector: String,
    #[serde(default)]
    pub text_content: String,
}

#[derive(Clone, Debug, Deserialize, Serialize, TS, ToSchema)]
#[serde(rename_all = "camelCase")]
#[ts(export_to = "events.ts", optional_fields)]
pub struct SelectedFile {
    pub path: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start_line: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end_line: Option<u32>,
}

/// A prompt in the queue.
#[derive(Clone, Debug, Serialize, TS, ToSchema)]
#[serde(rename_all = "camelCase")]
#[ts(export_to = "events.ts")]
pub struct QueuedPrompt {
    /// The prompt's id, by which it can be edited, moved and removed.
    pub prompt_id: String,
    pub prompt: String,
}

/// A prompt's id in a payload: a UUID in its usual form.
pub(super) fn prompt_id<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<PromptId>, D::Error> {
    let Some(text) = Option::<String>::deserialize(deserializer)? else {
        return Ok(None);
    };
    let id = text.parse().ok().filter(|_| text.len() == UUID_LENGTH);
    id.map(Some)
        .ok_or_else(|| serde::de::Error::custom("a prompt's id must be a UUID"))
}

const UUID_LENGTH: usize = 36;
