//! Stream events: the pieces of a model message while the model writes it.

use serde_json::{Map, Value};

use super::body::{ModelMessage, Usage};
use super::content::Block;
use crate::record::{message_records, message_variants};

/// The `type` of a stream event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum StreamEventKind {
    /// A message begins.
    MessageStart,
    /// A content block begins.
    ContentBlockStart,
    /// A piece of a content block.
    ContentBlockDelta,
    /// A content block ends.
    ContentBlockStop,
    /// The message's last fields.
    MessageDelta,
    /// The message ends.
    MessageStop,
    /// A type that this version of the crate does not know.
    Other,
}

impl StreamEventKind {
    pub(super) fn of(name: &str) -> Self {
        match name {
            "message_start" => Self::MessageStart,
            "content_block_start" => Self::ContentBlockStart,
            "content_block_delta" => Self::ContentBlockDelta,
            "content_block_stop" => Self::ContentBlockStop,
            "message_delta" => Self::MessageDelta,
            "message_stop" => Self::MessageStop,
            _ => Self::Other,
        }
    }
}

message_variants! {
    /// An event of the model's streaming API.
    StreamEvent by "type" {
        /// A message begins.
        MessageStart = "message_start"(MessageStart),
        /// A content block begins.
        ContentBlockStart = "content_block_start"(ContentBlockStart),
        /// A piece of a content block.
        ContentBlockDelta = "content_block_delta"(ContentBlockDelta),
        /// A content block ends.
        ContentBlockStop = "content_block_stop"(ContentBlockStop),
        /// The message's last fields.
        MessageDelta = "message_delta"(MessageDelta),
        /// The message ends.
        MessageStop = "message_stop"(MessageStop),
    }
}

message_variants! {
    /// A piece of a content block.
    StreamDelta by "type" {
        /// A piece of a text block.
        Text = "text_delta"(TextDelta),
        /// A piece of a thinking block.
        Thinking = "thinking_delta"(ThinkingDelta),
        /// A piece of a tool call's input, as JSON.
        InputJson = "input_json_delta"(InputJsonDelta),
        /// A piece of a thinking block's signature.
        Signature = "signature_delta"(SignatureDelta),
        /// A citation of a text block.
        Citations = "citations_delta"(CitationsDelta),
    }
}

message_records! {
    /// A message begins.
    MessageStart {
        /// The message, still without content.
        message: ModelMessage,
    }

    /// A content block begins.
    ContentBlockStart {
        /// Its place in the message.
        index: u32,
        /// The block, still empty.
        content_block: Block,
    }

    /// A piece of a content block.
    ContentBlockDelta {
        /// The block's place in the message.
        index: u32,
        /// The piece.
        delta: StreamDelta,
    }

    /// A content block ends.
    ContentBlockStop {
        /// Its place in the message.
        index: u32,
    }

    /// The message's last fields.
    MessageDelta {
        /// Fields of the message.
        delta: Map<String, Value>,
        /// The tokens that were used.
        usage: Usage,
    }

    /// The message ends.
    MessageStop {}

    /// A piece of a text block.
    TextDelta {
        /// The text.
        text: String,
    }

    /// A piece of a thinking block.
    ThinkingDelta {
        /// The thoughts.
        thinking: String,
    }

    /// A piece of a tool call's input.
    InputJsonDelta {
        /// JSON that is not whole yet.
        partial_json: String,
    }

    /// A piece of a thinking block's signature.
    SignatureDelta {
        /// The signature.
        signature: String,
    }

    /// A citation of a text block.
    CitationsDelta {
        /// The citation.
        citation: Value,
    }
}
