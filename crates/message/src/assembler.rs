//! Puts stream events together into the messages that they are pieces of.

use std::collections::{BTreeMap, HashMap};

use serde_json::{Map, Value};

use crate::message::{Block, DeltaKind, Kind, Message, ModelMessage};

/// Something that the model has finished writing.
#[allow(
    clippy::large_enum_variant,
    reason = "there is one for each content block, and it is taken apart at once"
)]
#[derive(Debug, Clone, PartialEq)]
pub enum Assembled {
    /// A content block.
    Block {
        /// The message that it belongs to.
        message_id: String,
        /// Its place in the message.
        index: u32,
        /// The content block, whole.
        block: Block,
    },
    /// The whole message, with its final usage.
    Message(Box<ModelMessage>),
}

/// Puts stream events together. The main agent and every subagent write at the same time; each has a message of its
/// own, told apart by `parent_tool_use_id`.
///
/// ```
/// use tiller_message::{Assembled, Assembler, Message};
///
/// let mut assembler = Assembler::new();
/// for line in [
///     r#"{"type":"stream_event","event":{"type":"message_start","message":{"id":"m1","content":[]}}}"#,
///     r#"{"type":"stream_event","event":{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}}"#,
///     r#"{"type":"stream_event","event":{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Hel"}}}"#,
///     r#"{"type":"stream_event","event":{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"lo"}}}"#,
/// ] {
///     assert_eq!(assembler.push(&Message::parse(line)?), None);
/// }
/// assert_eq!(assembler.text(None), "Hello");
/// let stop = Message::parse(r#"{"type":"stream_event","event":{"type":"content_block_stop","index":0}}"#)?;
/// let Some(Assembled::Block { block, .. }) = assembler.push(&stop) else { panic!() };
/// assert_eq!(block.as_text(), Some("Hello"));
/// # Ok::<(), tiller_message::ParseError>(())
/// ```
#[derive(Debug, Default)]
pub struct Assembler {
    /// By `parent_tool_use_id`; the main agent's is the empty one.
    open: HashMap<String, OpenMessage>,
}

#[derive(Debug, Default)]
struct OpenMessage {
    /// The message as it was announced, with the fields that came later.
    fields: Map<String, Value>,
    blocks: BTreeMap<u32, OpenBlock>,
}

#[derive(Debug, Default)]
struct OpenBlock {
    /// The block as it was announced.
    fields: Map<String, Value>,
    text: String,
    thinking: String,
    input_json: String,
    signature: String,
    citations: Vec<Value>,
}

impl Assembler {
    /// An assembler without open messages.
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes the next message of any kind. Returns a block or a message that it finishes.
    pub fn push(&mut self, message: &Message) -> Option<Assembled> {
        if message.kind() == Kind::Result {
            // A message that is still open was interrupted and will not be finished.
            self.open.clear();
            return None;
        }
        if message.kind() != Kind::StreamEvent {
            return None;
        }
        let parent = message.parent_tool_use_id().unwrap_or_default();
        if let Some(delta) = message.delta() {
            if let Some(open) = self.open.get_mut(parent) {
                open.blocks
                    .entry(delta.index)
                    .or_default()
                    .add(delta.kind, delta.text);
            }
            return None;
        }
        let Value::Object(event) = message.decode::<Map<String, Value>>().ok()?.remove("event")? else {
            return None;
        };
        self.event(parent, event)
    }

    /// The unfinished message of the main agent (`None`) or of a subagent.
    pub fn partial(&self, parent_tool_use_id: Option<&str>) -> Option<ModelMessage> {
        self.open
            .get(parent_tool_use_id.unwrap_or_default())
            .map(OpenMessage::message)
    }

    /// The text of the unfinished message.
    pub fn text(&self, parent_tool_use_id: Option<&str>) -> String {
        let open = self.open.get(parent_tool_use_id.unwrap_or_default());
        open.into_iter()
            .flat_map(|open| open.blocks.values())
            .map(OpenBlock::whole_text)
            .collect()
    }

    fn event(&mut self, parent: &str, mut event: Map<String, Value>) -> Option<Assembled> {
        let index = event
            .get("index")
            .and_then(Value::as_u64)
            .and_then(|index| u32::try_from(index).ok());
        match event.get("type")?.as_str()? {
            "message_start" => {
                let fields = object(event.remove("message"));
                self.open.insert(
                    parent.to_owned(),
                    OpenMessage {
                        fields,
                        blocks: BTreeMap::new(),
                    },
                );
                None
            }
            "content_block_start" => {
                let fields = object(event.remove("content_block"));
                let open = self.open.get_mut(parent)?;
                open.blocks.insert(
                    index?,
                    OpenBlock {
                        fields,
                        ..OpenBlock::default()
                    },
                );
                None
            }
            "content_block_delta" => {
                // A delta that is not text: a citation, or something new.
                let mut delta = object(event.remove("delta"));
                let block = self.open.get_mut(parent)?.blocks.entry(index?).or_default();
                block.citations.extend(delta.remove("citation"));
                None
            }
            "content_block_stop" => {
                let open = self.open.get(parent)?;
                let block = open.blocks.get(&index?)?.block();
                Some(Assembled::Block {
                    message_id: open.id(),
                    index: index?,
                    block,
                })
            }
            "message_delta" => {
                let open = self.open.get_mut(parent)?;
                open.fields.extend(object(event.remove("delta")));
                let mut usage = object(open.fields.remove("usage"));
                usage.extend(
                    object(event.remove("usage"))
                        .into_iter()
                        .filter(|(_, value)| !value.is_null()),
                );
                open.fields.insert("usage".to_owned(), Value::Object(usage));
                None
            }
            "message_stop" => Some(Assembled::Message(Box::new(self.open.remove(parent)?.message()))),
            _ => None,
        }
    }
}

impl OpenMessage {
    fn id(&self) -> String {
        self.fields
            .get("id")
            .and_then(Value::as_str)
            .unwrap_or_default()
            .to_owned()
    }

    fn message(&self) -> ModelMessage {
        let mut message = ModelMessage::from(self.fields.clone());
        message.content = self.blocks.values().map(OpenBlock::block).collect();
        message
    }
}

impl OpenBlock {
    fn add(&mut self, kind: DeltaKind, text: &str) {
        match kind {
            DeltaKind::Text => self.text.push_str(text),
            DeltaKind::Thinking => self.thinking.push_str(text),
            DeltaKind::InputJson => self.input_json.push_str(text),
            DeltaKind::Signature => self.signature.push_str(text),
        }
    }

    fn whole_text(&self) -> String {
        let announced = self
            .fields
            .get("text")
            .and_then(Value::as_str)
            .unwrap_or_default();
        format!("{announced}{}", self.text)
    }

    fn block(&self) -> Block {
        let mut fields = self.fields.clone();
        for (name, added) in [
            ("text", &self.text),
            ("thinking", &self.thinking),
            ("signature", &self.signature),
        ] {
            if !added.is_empty() {
                let announced = fields.get(name).and_then(Value::as_str).unwrap_or_default();
                fields.insert(name.to_owned(), Value::String(format!("{announced}{added}")));
            }
        }
        if !self.input_json.is_empty() {
            // Until the input is complete it is not JSON; the announced input, which is empty, stays till then.
            if let Ok(input) = serde_json::from_str(&self.input_json) {
                fields.insert("input".to_owned(), input);
            }
        }
        if !self.citations.is_empty() {
            let mut citations = match fields.remove("citations") {
                Some(Value::Array(citations)) => citations,
                _ => Vec::new(),
            };
            citations.extend(self.citations.iter().cloned());
            fields.insert("citations".to_owned(), Value::Array(citations));
        }
        fields.into()
    }
}

fn object(value: Option<Value>) -> Map<String, Value> {
    match value {
        Some(Value::Object(fields)) => fields,
        _ => Map::new(),
    }
}
