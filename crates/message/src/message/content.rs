//! Content blocks: the parts of messages.

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value};

use crate::record::{message_records, message_variants};

message_variants! {
    /// One block of a message.
    Block by "type" {
        /// Text.
        Text = "text"(TextBlock),
        /// Thoughts of the model.
        Thinking = "thinking"(ThinkingBlock),
        /// Thoughts of the model that are encrypted.
        RedactedThinking = "redacted_thinking"(RedactedThinkingBlock),
        /// A tool call.
        ToolUse = "tool_use"(ToolUseBlock),
        /// The result of a tool.
        ToolResult = "tool_result"(ToolResultBlock),
        /// A call of a tool that the model's provider runs.
        ServerToolUse = "server_tool_use"(ToolUseBlock),
        /// What a web search of the provider's found.
        WebSearchToolResult = "web_search_tool_result"(ServerToolResultBlock),
        /// What the provider fetched from the web.
        WebFetchToolResult = "web_fetch_tool_result"(ServerToolResultBlock),
        /// What code run by the provider returned.
        CodeExecutionToolResult = "code_execution_tool_result"(ServerToolResultBlock),
        /// What a shell run by the provider returned.
        BashCodeExecutionToolResult = "bash_code_execution_tool_result"(ServerToolResultBlock),
        /// What an editor run by the provider returned.
        TextEditorCodeExecutionToolResult = "text_editor_code_execution_tool_result"(ServerToolResultBlock),
        /// Tools that the provider's search for tools found.
        ToolSearchToolResult = "tool_search_tool_result"(ServerToolResultBlock),
        /// A call of a tool of an MCP server that the provider talks to.
        McpToolUse = "mcp_tool_use"(ToolUseBlock),
        /// What such a tool returned.
        McpToolResult = "mcp_tool_result"(ToolResultBlock),
        /// An image.
        Image = "image"(MediaBlock),
        /// A document.
        Document = "document"(MediaBlock),
    }
}

message_records! {
    /// Text.
    TextBlock {
        /// The text.
        text: String,
        /// Where it comes from.
        citations: Vec<Value>,
    }

    /// Thoughts of the model.
    ThinkingBlock {
        /// The thoughts.
        thinking: String,
        /// Proves to the model that the thoughts are its own.
        signature: String,
    }

    /// Thoughts of the model that are encrypted.
    RedactedThinkingBlock {
        /// The thoughts, encrypted.
        data: String,
    }

    /// A tool call.
    ToolUseBlock {
        /// The call's id.
        id: String,
        /// The tool.
        name: String,
        /// Its input.
        input: Value,
    }

    /// The result of a tool.
    ToolResultBlock {
        /// The call's id.
        tool_use_id: String,
        /// The result.
        content: Content,
        /// Whether it failed.
        is_error: bool,
    }

    /// What a tool of the provider's returned.
    ServerToolResultBlock {
        /// The call's id.
        tool_use_id: String,
        /// What it returned, which differs from tool to tool.
        content: Value,
    }

    /// An image or a document.
    MediaBlock {
        /// The data, or where it is.
        source: MediaSource,
        /// A document's title.
        title: Option<String>,
    }

    /// The data of an image or a document, or where it is.
    MediaSource {
        /// `base64`, `url`, `text` or `file`.
        kind = "type": String,
        /// What it is.
        media_type: Option<String>,
        /// The data.
        data: Option<String>,
        /// Where it is.
        url: Option<String>,
    }
}

impl Block {
    /// The text, if it is a text block.
    pub fn as_text(&self) -> Option<&str> {
        match self {
            Self::Text(block) => Some(&block.text),
            _ => None,
        }
    }

    /// The tool call, if it is one, also of the provider's tools.
    pub fn as_tool_use(&self) -> Option<&ToolUseBlock> {
        match self {
            Self::ToolUse(block) | Self::ServerToolUse(block) | Self::McpToolUse(block) => Some(block),
            _ => None,
        }
    }

    /// The tool result, if it is one.
    pub fn as_tool_result(&self) -> Option<&ToolResultBlock> {
        match self {
            Self::ToolResult(block) | Self::McpToolResult(block) => Some(block),
            _ => None,
        }
    }
}

/// A text or a list of blocks: the CLI writes either.
#[derive(Debug, Clone, PartialEq)]
pub enum Content {
    /// A text.
    Text(String),
    /// Blocks.
    Blocks(Vec<Block>),
}

impl Content {
    /// All text in it; texts of several blocks on lines of their own.
    pub fn text(&self) -> String {
        match self {
            Self::Text(text) => text.clone(),
            Self::Blocks(blocks) => blocks
                .iter()
                .filter_map(Block::as_text)
                .collect::<Vec<_>>()
                .join("\n"),
        }
    }

    /// The blocks; none for a mere text.
    pub fn blocks(&self) -> &[Block] {
        match self {
            Self::Text(_) => &[],
            Self::Blocks(blocks) => blocks,
        }
    }
}

impl Default for Content {
    fn default() -> Self {
        Self::Blocks(Vec::new())
    }
}

impl Serialize for Content {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Text(text) => serializer.serialize_str(text),
            Self::Blocks(blocks) => blocks.serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for Content {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match Value::deserialize(deserializer)? {
            Value::String(text) => Ok(Self::Text(text)),
            Value::Array(values) => {
                let blocks: Result<Vec<Map<String, Value>>, _> = values
                    .into_iter()
                    .map(|value| match value {
                        Value::Object(fields) => Ok(fields),
                        other => Err(serde::de::Error::custom(format!(
                            "a block is not an object: {other}"
                        ))),
                    })
                    .collect();
                Ok(Self::Blocks(blocks?.into_iter().map(Block::from).collect()))
            }
            other => Err(serde::de::Error::custom(format!(
                "the content is neither text nor blocks: {other}"
            ))),
        }
    }
}
