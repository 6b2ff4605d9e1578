//! One line of a transcript as a [`Message`].

use std::collections::HashMap;
use std::fs::File;
use std::io::{Read as _, Seek as _, SeekFrom};

use serde::Deserialize;
use serde_json::{Map, Value, json};
use tiller_message::{Block, Content};

use crate::error::Result;
use crate::model::{Compaction, Message, Patch, Role, TranscriptEntry, WholeResult};
use crate::read::outline::Node;
use crate::read::typed;
use crate::search::text;

/// A parsed line. The fields around the message are the transcript's; the blocks inside are those of `tiller-message`.
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
    message: ModelMessage,
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

/// The message of a person or the model.
#[derive(Debug, Default)]
struct ModelMessage {
    id: Option<String>,
    model: Option<String>,
    blocks: Vec<Block>,
    /// Its other fields, such as the usage.
    other: Map<String, Value>,
}

/// Fields that a [`Message`] does not have but a live session's events do.
#[derive(Debug)]
pub(crate) struct Rest {
    /// Fields of the model's message.
    message: Map<String, Value>,
    tool_use_result: Value,
}

impl<'de> Deserialize<'de> for ModelMessage {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        // A line with an unexpected message is still shown.
        let Value::Object(mut fields) = Value::deserialize(deserializer)? else {
            return Ok(Self::default());
        };
        let mut text = |name: &str| match fields.remove(name) {
            Some(Value::String(text)) => Some(text),
            _ => None,
        };
        let (id, model) = (text("id"), text("model"));
        let blocks = match fields.remove("content") {
            Some(Value::String(text)) => vec![text_block(text)],
            Some(Value::Array(values)) => values.into_iter().filter_map(block).collect(),
            _ => Vec::new(),
        };
        Ok(Self {
            id,
            model,
            blocks,
            other: fields,
        })
    }
}

fn text_block(text: String) -> Block {
    let mut fields = Map::new();
    fields.insert("type".into(), "text".into());
    fields.insert("text".into(), text.into());
    Block::from(fields)
}

fn block(value: Value) -> Option<Block> {
    match value {
        Value::Object(fields) => Some(Block::from(fields)),
        // Some releases wrote plain strings among the blocks.
        Value::String(text) => Some(text_block(text)),
        _ => None,
    }
}

/// Reads the line of a node; `None` if the file has something else there by now.
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
    /// Calls `each` with the id and name of every tool call.
    pub(crate) fn calls(&self, mut each: impl FnMut(&str, &str)) {
        for call in self.message.blocks.iter().filter_map(Block::as_tool_use) {
            if !call.id.is_empty() && !call.name.is_empty() {
                each(&call.id, &call.name);
            }
        }
    }

    /// The ids of the calls that this line answers.
    pub(crate) fn results(&self) -> impl Iterator<Item = &str> {
        self.message.blocks.iter().filter_map(answered)
    }

    /// The calls that start a subagent: their ids and prompts.
    pub(crate) fn prompts(&self) -> impl Iterator<Item = (&str, &str)> {
        let calls = self.message.blocks.iter().filter_map(Block::as_tool_use);
        calls.filter_map(|call| Some((call.id.as_str(), call.input.get("prompt")?.as_str()?)))
    }

    /// The subagent whose result this is.
    pub(crate) fn finished_agent(&self) -> Option<&str> {
        self.tool_use_result.get("agentId")?.as_str()
    }

    /// The text of a message that has only text.
    pub(crate) fn plain_text(&self) -> Option<&str> {
        match self.message.blocks.as_slice() {
            [only] => only.as_text(),
            _ => None,
        }
    }

    pub(crate) fn compaction(&self) -> Compaction {
        Compaction {
            trigger: self.compact_metadata["trigger"].as_str().map(str::to_owned),
            pre_tokens: self.compact_metadata["preTokens"].as_u64(),
        }
    }

    pub(crate) fn take_rest(&mut self) -> Rest {
        Rest {
            message: std::mem::take(&mut self.message.other),
            tool_use_result: self.tool_use_result.clone(),
        }
    }

    pub(crate) fn into_message(mut self, calls: &HashMap<String, String>) -> Message {
        let mut content = self.message.blocks;
        for block in &mut content {
            let name = answered(block).and_then(|id| calls.get(id)).cloned();
            if let (Some(name), Some(fields)) = (name, extra(block)) {
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
            model: self.message.model,
            message_id: self.message.id,
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

/// A message as an entry, in the form of a live session's events.
pub(crate) fn entry(message: Message, rest: Rest) -> TranscriptEntry {
    let whole_results = message.content.iter().filter_map(whole_result).collect();
    let (uuid, timestamp, branch) = (message.uuid.clone(), message.timestamp.clone(), message.branch);
    TranscriptEntry {
        uuid,
        timestamp,
        branch,
        message: told(message, rest),
        whole_results,
    }
}

fn told(message: Message, rest: Rest) -> Option<Value> {
    if message.is_meta {
        return None;
    }
    let texts: Vec<&str> = message.content.iter().filter_map(Block::as_text).collect();
    let text = texts.join("\n");
    let (uuid, parent) = (message.uuid, message.parent_tool_use_id);
    if let Some(compaction) = message.compaction {
        return Some(json!({
            "type": "system", "subtype": "compact_boundary", "uuid": uuid,
            "summary": text, "compact_metadata": compaction,
        }));
    }
    let is_result = message.content.iter().any(|block| answered(block).is_some());
    match message.role {
        Role::Assistant => {
            let mut body = rest.message;
            // The answer's id groups its lines.
            let id = message.message_id.unwrap_or_else(|| uuid.clone());
            body.insert("id".into(), id.into());
            body.insert("model".into(), message.model.into());
            body.insert("content".into(), json!(message.content));
            Some(json!({
                "type": "assistant", "message": body, "uuid": uuid, "parent_tool_use_id": parent,
            }))
        }
        Role::User if is_result || message.sidechain => Some(json!({
            "type": "user", "message": {"role": "user", "content": message.content},
            "tool_use_result": rest.tool_use_result, "uuid": uuid, "parent_tool_use_id": parent,
        })),
        Role::User => {
            let prompt = typed::as_typed(&text);
            let is_image = |block: &&Block| matches!(block, Block::Image(_));
            let images: Vec<&Block> = message.content.iter().filter(is_image).collect();
            let mut told = json!({"type": "user_prompt", "prompt": prompt, "promptId": uuid, "uuid": uuid});
            if !images.is_empty() {
                told["images"] = json!(images);
            } else if prompt.is_empty() {
                return None;
            }
            Some(told)
        }
    }
}

fn whole_result(block: &Block) -> Option<WholeResult> {
    let Block::ToolResult(result) = block else {
        return None;
    };
    let place = result.extra.get("persisted_output")?;
    Some(WholeResult {
        name: place.get("name")?.as_str()?.to_owned(),
        size: place.get("size")?.as_u64()?,
    })
}

/// The call that a block answers.
fn answered(block: &Block) -> Option<&str> {
    match block {
        Block::ToolResult(result) | Block::McpToolResult(result) => Some(result.tool_use_id.as_str()),
        Block::WebSearchToolResult(result)
        | Block::WebFetchToolResult(result)
        | Block::CodeExecutionToolResult(result)
        | Block::BashCodeExecutionToolResult(result)
        | Block::TextEditorCodeExecutionToolResult(result)
        | Block::ToolSearchToolResult(result) => Some(result.tool_use_id.as_str()),
        Block::Other(fields) => fields.get("tool_use_id")?.as_str(),
        _ => None,
    }
    .filter(|id| !id.is_empty())
}

/// The unknown fields of a block, to which ours are added.
fn extra(block: &mut Block) -> Option<&mut Map<String, Value>> {
    match block {
        Block::ToolResult(result) | Block::McpToolResult(result) => Some(&mut result.extra),
        Block::WebSearchToolResult(result)
        | Block::WebFetchToolResult(result)
        | Block::CodeExecutionToolResult(result)
        | Block::BashCodeExecutionToolResult(result)
        | Block::TextEditorCodeExecutionToolResult(result)
        | Block::ToolSearchToolResult(result) => Some(&mut result.extra),
        Block::Other(fields) => Some(fields),
        _ => None,
    }
}

/// Adds the file name and size to a result that is stored beside the transcript.
pub(crate) fn note_persisted(block: &mut Block, size_of: impl FnOnce(&str) -> Option<u64>) {
    let Block::ToolResult(result) = block else {
        return;
    };
    let text = match &result.content {
        Content::Text(text) => Some(text.as_str()),
        Content::Blocks(blocks) => blocks.first().and_then(Block::as_text),
    };
    let Some(name) = text.and_then(text::persisted_name).map(str::to_owned) else {
        return;
    };
    if let Some(size) = size_of(&name) {
        let place = json!({"name": name, "size": size});
        result.extra.insert("persisted_output".into(), place);
    }
}
