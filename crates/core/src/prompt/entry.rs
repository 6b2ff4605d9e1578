//! The entry of a prompt in a session's history. Clients read it as it is written here.

use serde::{Deserialize, Serialize};

use super::{Attachment, Prompt, UiContext};
use crate::ids::PromptId;
use crate::json::RawJson;

#[derive(Deserialize, Serialize)]
#[serde(tag = "type", rename = "user_prompt")]
struct PromptEntry {
    prompt: String,
    /// Entries of older versions have none.
    #[serde(rename = "promptId", default, skip_serializing_if = "Option::is_none")]
    prompt_id: Option<String>,
    /// The same id, under its earlier name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    uuid: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    attachments: Vec<Attachment>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    context: Option<UiContext>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    parent_tool_use_id: Option<String>,
}

impl Prompt {
    /// The prompt's entry in the history of its session.
    pub fn to_entry(&self) -> Result<RawJson, serde_json::Error> {
        let id = self.id.to_string();
        RawJson::of(&PromptEntry {
            prompt: self.text.clone(),
            prompt_id: Some(id.clone()),
            uuid: Some(id),
            attachments: self.attachments.clone(),
            context: self.context.clone(),
            parent_tool_use_id: self.parent_tool_use_id.clone(),
        })
    }

    /// Reads an entry. `id_without` creates the id for an entry without one.
    pub fn from_entry(entry: &str, id_without: impl FnOnce() -> PromptId) -> Result<Self, serde_json::Error> {
        let entry: PromptEntry = serde_json::from_str(entry)?;
        let id = entry.uuid.as_deref().and_then(|uuid| uuid.parse().ok());
        Ok(Self {
            id: id.unwrap_or_else(id_without),
            text: entry.prompt,
            attachments: entry.attachments,
            context: entry.context,
            parent_tool_use_id: entry.parent_tool_use_id,
        })
    }
}
