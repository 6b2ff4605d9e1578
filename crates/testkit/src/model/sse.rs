//! Plays a reply as the Messages API's events, with its gates, pauses and faults.

use std::io;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::sync::mpsc;

use super::gate::Gates;
use super::request::fill;
use super::script::{Part, Reply};

/// What a player sends: an event, or an error that cuts the connection.
pub(crate) type Frame = io::Result<Value>;

/// A reply on its way to one request.
pub(crate) struct Player<'a> {
    /// The request, for placeholders and the model's name.
    pub(crate) body: &'a Value,
    pub(crate) gates: &'a Gates,
    pub(crate) message_id: String,
    pub(crate) output: mpsc::Sender<Frame>,
}

/// The client has disconnected; nothing is left to do.
struct Gone;

/// Why a reply ends before its last part.
enum Early {
    Gone,
    /// The script ends the stream here.
    Stopped,
}

impl From<Gone> for Early {
    fn from(Gone: Gone) -> Self {
        Self::Gone
    }
}

/// The content block that is being written.
struct Block {
    index: usize,
    kind: BlockKind,
}

enum BlockKind {
    Text,
    Thinking { signature: String },
}

impl Player<'_> {
    /// Sends the whole reply. Ends early when the client disconnects or the script says so.
    pub(crate) async fn play(self, reply: &Reply) {
        match self.play_parts(reply).await {
            Ok(()) | Err(Early::Gone | Early::Stopped) => {}
        }
    }

    async fn play_parts(&self, reply: &Reply) -> Result<(), Early> {
        let usage = reply.usage;
        self.send(json!({"type": "message_start", "message": {
            "id": self.message_id, "type": "message", "role": "assistant", "model": self.body["model"],
            "content": [], "stop_reason": null, "stop_sequence": null,
            "usage": {
                "input_tokens": usage.input_tokens,
                "cache_creation_input_tokens": usage.cache_creation_input_tokens,
                "cache_read_input_tokens": usage.cache_read_input_tokens,
                "output_tokens": 1,
            },
        }}))
        .await?;
        self.send(json!({"type": "ping"})).await?;

        let mut next_index = 0;
        let mut open: Option<Block> = None;
        for part in &reply.parts {
            match part {
                Part::Text {
                    text,
                    chunk,
                    pause_ms,
                } => {
                    if !matches!(&open, Some(block) if matches!(block.kind, BlockKind::Text)) {
                        self.close(open.take()).await?;
                        open = Some(self.open(&mut next_index, BlockKind::Text).await?);
                    }
                    let text = fill(text, self.body);
                    for piece in pieces(&text, *chunk) {
                        self.delta(next_index - 1, json!({"type": "text_delta", "text": piece}))
                            .await?;
                        self.pause(*pause_ms).await?;
                    }
                }
                Part::Thinking {
                    thinking,
                    signature,
                    chunk,
                    pause_ms,
                } => {
                    if !matches!(&open, Some(block) if matches!(block.kind, BlockKind::Thinking { .. })) {
                        self.close(open.take()).await?;
                        let kind = BlockKind::Thinking {
                            signature: signature.clone(),
                        };
                        open = Some(self.open(&mut next_index, kind).await?);
                    }
                    for piece in pieces(thinking, *chunk) {
                        self.delta(
                            next_index - 1,
                            json!({"type": "thinking_delta", "thinking": piece}),
                        )
                        .await?;
                        self.pause(*pause_ms).await?;
                    }
                }
                Part::ToolUse { name, input, id } => {
                    self.close(open.take()).await?;
                    self.tool_use(next_index, name, input, id.as_deref()).await?;
                    next_index += 1;
                }
                Part::EndBlock => self.close(open.take()).await?,
                Part::Gate { name } => self.unless_gone(self.gates.get(name).pass()).await?,
                Part::Pause { ms } => self.pause(*ms).await?,
                Part::Cut => {
                    self.cut().await?;
                    return Err(Early::Stopped);
                }
                Part::StreamError { error_type, message } => {
                    self.send(json!({"type": "error", "error": {"type": error_type, "message": message}}))
                        .await?;
                    return Err(Early::Stopped);
                }
            }
        }
        self.close(open.take()).await?;
        self.send(json!({
            "type": "message_delta",
            "delta": {"stop_reason": reply.stop_reason(), "stop_sequence": null},
            "usage": usage,
        }))
        .await?;
        self.send(json!({"type": "message_stop"})).await?;
        Ok(())
    }

    async fn open(&self, next_index: &mut usize, kind: BlockKind) -> Result<Block, Gone> {
        let index = *next_index;
        *next_index += 1;
        let content_block = match kind {
            BlockKind::Text => json!({"type": "text", "text": ""}),
            BlockKind::Thinking { .. } => {
                json!({"type": "thinking", "thinking": "", "signature": ""})
            }
        };
        self.send(json!({"type": "content_block_start", "index": index, "content_block": content_block}))
            .await?;
        Ok(Block { index, kind })
    }

    async fn close(&self, block: Option<Block>) -> Result<(), Gone> {
        let Some(Block { index, kind }) = block else {
            return Ok(());
        };
        if let BlockKind::Thinking { signature } = kind {
            self.delta(index, json!({"type": "signature_delta", "signature": signature}))
                .await?;
        }
        self.send(json!({"type": "content_block_stop", "index": index}))
            .await
    }

    async fn tool_use(&self, index: usize, name: &str, input: &Value, id: Option<&str>) -> Result<(), Gone> {
        let id = id.map_or_else(
            || format!("{}_{index}", self.message_id.replacen("msg", "toolu", 1)),
            str::to_owned,
        );
        self.send(
            json!({"type": "content_block_start", "index": index, "content_block": {
                "type": "tool_use", "id": id, "name": name, "input": {},
            }}),
        )
        .await?;
        for piece in pieces(&input.to_string(), Some(TOOL_INPUT_CHUNK)) {
            self.delta(index, json!({"type": "input_json_delta", "partial_json": piece}))
                .await?;
        }
        self.send(json!({"type": "content_block_stop", "index": index}))
            .await
    }

    async fn delta(&self, index: usize, delta: Value) -> Result<(), Gone> {
        self.send(json!({"type": "content_block_delta", "index": index, "delta": delta}))
            .await
    }

    async fn pause(&self, ms: u64) -> Result<(), Gone> {
        if ms == 0 {
            return Ok(());
        }
        self.unless_gone(tokio::time::sleep(Duration::from_millis(ms)))
            .await
    }

    async fn cut(&self) -> Result<(), Gone> {
        // hyper drops unflushed data when a body fails, so what was sent before needs a moment to leave.
        tokio::time::sleep(Duration::from_millis(250)).await;
        let error = io::Error::new(io::ErrorKind::ConnectionAborted, "cut by the script");
        self.output.send(Err(error)).await.map_err(|_| Gone)
    }

    async fn send(&self, event: Value) -> Result<(), Gone> {
        self.output.send(Ok(event)).await.map_err(|_| Gone)
    }

    async fn unless_gone(&self, wait: impl Future<Output = ()>) -> Result<(), Gone> {
        tokio::select! {
            () = wait => Ok(()),
            () = self.output.closed() => Err(Gone),
        }
    }
}

/// Long enough that inputs don't take many events, short enough that most of them are split.
const TOOL_INPUT_CHUNK: usize = 24;

fn pieces(text: &str, chunk: Option<usize>) -> Vec<String> {
    let Some(chunk) = chunk else {
        return vec![text.to_owned()];
    };
    let characters: Vec<char> = text.chars().collect();
    characters
        .chunks(chunk.max(1))
        .map(|piece| piece.iter().collect())
        .collect()
}

/// Assembles a stream of events into a message, for a request without streaming.
pub(crate) fn assemble(events: Vec<Value>) -> Value {
    let mut message = Value::Null;
    let mut tool_input = String::new();
    for event in events {
        match event["type"].as_str() {
            Some("message_start") => message = event["message"].clone(),
            Some("content_block_start") => {
                tool_input.clear();
                if let Some(content) = message["content"].as_array_mut() {
                    content.push(event["content_block"].clone());
                }
            }
            Some("content_block_delta") => {
                let delta = &event["delta"];
                if let Some(json) = delta["partial_json"].as_str() {
                    tool_input.push_str(json);
                }
                let block = message["content"].as_array_mut().and_then(|c| c.last_mut());
                if let Some(block) = block {
                    for field in ["text", "thinking", "signature"] {
                        if let Some(more) = delta[field].as_str() {
                            let so_far = block[field].as_str().unwrap_or_default();
                            block[field] = Value::from(format!("{so_far}{more}"));
                        }
                    }
                    if let Ok(input) = serde_json::from_str::<Value>(&tool_input) {
                        block["input"] = input;
                    }
                }
            }
            Some("message_delta") => {
                message["stop_reason"] = event["delta"]["stop_reason"].clone();
                message["usage"] = event["usage"].clone();
            }
            _ => {}
        }
    }
    message
}
