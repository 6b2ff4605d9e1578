//! One line of a transcript as a [`Message`].

use std::collections::HashMap;
use std::fs::File;
use std::io::{Read as _, Seek as _, SeekFrom};

use serde::Deserialize;
use serde_json::{Value, json};

use crate::error::Result;
use crate::model::{Compaction, Message, Patch, Role};
use crate::read::outline::Node;
use crate::search::text;

/// A line, whole.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Line {
    #[serde(rename = "type")]
    kind: String,
    #[serde(default)]
    uuid: String,
    parent_uuid: Option<String>,
    #[serde(default)]
    timestamp: String,
    #[serde(default)]
    message: Value,
    agent_id: Option<String>,
    #[serde(default)]
    is_sidechain: bool,
    #[serde(default)]
    is_meta: bool,
    #[serde(default)]
    is_compact_summary: bool,
    #[serde(default)]
    is_api_error_message: bool,
    #[serde(default)]
    tool_use_result: Value,
    #[serde(default)]
    compact_metadata: Value,
}

/// Reads the line of a node; `None` if something else is there by now.
pub(crate) fn read(file: &mut File, node: &Node) -> Result<Option<Line>> {
    let mut bytes = Vec::with_capacity(node.length as usize);
    file.seek(SeekFrom::Start(node.offset))?;
    file.take(u64::from(node.length)).read_to_end(&mut bytes)?;
    match serde_json::from_slice(&bytes) {
        Ok(line) => Ok(Some(line)),
        Err(error) => {
            tracing::debug!(%error, "a line of a transcript could not be read");
            Ok(None)
        }
    }
}

impl Line {
    fn blocks(&self) -> impl Iterator<Item = &Value> {
        self.message["content"].as_array().into_iter().flatten()
    }

    /// Calls `each` with the id and name of every tool that is called.
    pub(crate) fn calls(&self, mut each: impl FnMut(&str, &str)) {
        for block in self.blocks() {
            let is_call = block["type"]
                .as_str()
                .is_some_and(|kind| kind.ends_with("tool_use"));
            if let (true, Some(id), Some(name)) = (is_call, block["id"].as_str(), block["name"].as_str()) {
                each(id, name);
            }
        }
    }

    /// The ids of calls that are answered here.
    pub(crate) fn results(&self) -> impl Iterator<Item = &str> {
        self.blocks().filter_map(|block| block["tool_use_id"].as_str())
    }

    /// Calls that start a subagent: their ids, and what it was told.
    pub(crate) fn prompts(&self) -> impl Iterator<Item = (&str, &str)> {
        self.blocks()
            .filter_map(|block| Some((block["id"].as_str()?, block["input"]["prompt"].as_str()?)))
    }

    /// The subagent whose result this is.
    pub(crate) fn finished_agent(&self) -> Option<&str> {
        self.tool_use_result["agentId"].as_str()
    }

    /// The text of a message that is nothing but text.
    pub(crate) fn plain_text(&self) -> Option<&str> {
        let content = &self.message["content"];
        content.as_str().or_else(|| match content.as_array()?.as_slice() {
            [only] => only["text"].as_str(),
            _ => None,
        })
    }

    pub(crate) fn compaction(&self) -> Compaction {
        Compaction {
            trigger: self.compact_metadata["trigger"].as_str().map(str::to_owned),
            pre_tokens: self.compact_metadata["preTokens"].as_u64(),
        }
    }

    pub(crate) fn into_message(mut self, calls: &HashMap<String, String>) -> Message {
        let mut content = match self.message["content"].take() {
            Value::String(text) => vec![json!({"type": "text", "text": text})],
            Value::Array(blocks) => blocks,
            _ => Vec::new(),
        };
        for block in &mut content {
            // Some releases wrote plain strings among the blocks.
            if let Value::String(text) = block {
                *block = json!({"type": "text", "text": std::mem::take(text)});
            }
            let name = block["tool_use_id"]
                .as_str()
                .and_then(|id| calls.get(id))
                .cloned();
            if let (Some(name), Some(fields)) = (name, block.as_object_mut()) {
                fields.insert("tool_name".into(), name.into());
            }
        }
        let result = &mut self.tool_use_result;
        let file_path = result["filePath"].as_str().map(str::to_owned);
        let patch = file_path
            .filter(|_| result["structuredPatch"].is_array())
            .map(|file_path| Patch {
                file_path,
                structured_patch: result["structuredPatch"].take(),
            });
        let text_of = |value: &Value| value.as_str().map(str::to_owned);
        Message {
            role: if self.kind == "user" {
                Role::User
            } else {
                Role::Assistant
            },
            content,
            timestamp: self.timestamp,
            uuid: self.uuid,
            parent_uuid: self.parent_uuid,
            model: text_of(&self.message["model"]),
            message_id: text_of(&self.message["id"]),
            branch: None,
            sidechain: self.is_sidechain,
            agent_id: self.agent_id,
            parent_tool_use_id: None,
            is_meta: self.is_meta,
            compaction: self.is_compact_summary.then(Compaction::default),
            is_api_error: self.is_api_error_message,
            patch,
        }
    }
}

/// Notes on a result whose whole text lies in a file beside the transcript where that is.
pub(crate) fn note_persisted(block: &mut Value, size_of: impl FnOnce(&str) -> Option<u64>) {
    if block["type"] != "tool_result" {
        return;
    }
    let content = &block["content"];
    let text = content.as_str().or_else(|| content[0]["text"].as_str());
    let Some(name) = text.and_then(text::persisted_name).map(str::to_owned) else {
        return;
    };
    if let (Some(size), Some(fields)) = (size_of(&name), block.as_object_mut()) {
        fields.insert("persisted_output".into(), json!({"name": name, "size": size}));
    }
}
