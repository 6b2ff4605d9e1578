//! Which pieces of streamed messages are no longer needed: those whose whole block is in the log.
//!
//! An agent announces a message (`message_start`), streams its blocks one after the other, and then sends each block again
//! as a whole (`assistant`). Its subagents do the same at the same time; the call that started a subagent tells them apart.
//! A turn that is killed leaves pieces without a whole block: they are all that is left of the block, and stay.

use std::collections::HashMap;

use crate::{Kind, Message, StreamEventKind};

/// The fields of a logged message that decide which pieces are needed.
#[derive(Debug, Default)]
pub struct PieceEntry {
    pub seq: u64,
    /// `None` if the entry is not a message.
    kind: Option<Kind>,
    /// The call that started the subagent which wrote the message; `None` for the main agent.
    parent: Option<String>,
    /// The kind of a piece.
    piece: Option<StreamEventKind>,
    /// The id of the model message that it announces, or is a block of.
    message: Option<String>,
}

impl PieceEntry {
    /// Reads an entry of the log. An entry that can't be read decides nothing, and stays.
    pub fn read(seq: u64, data: &[u8]) -> Self {
        let Ok(message) = Message::parse(data) else {
            return Self {
                seq,
                ..Self::default()
            };
        };
        Self {
            seq,
            kind: Some(message.kind()),
            parent: message.parent_tool_use_id().map(str::to_owned),
            piece: message.stream_event_kind(),
            message: message.model_message_id(),
        }
    }
}

/// Takes the messages of a session in order, and finds the pieces that can be removed.
#[derive(Debug, Default)]
pub struct StreamedPieces {
    /// The message that each agent is streaming.
    open: HashMap<Option<String>, OpenMessage>,
    /// Not needed any more.
    removable: Vec<u64>,
}

#[derive(Debug, Default)]
struct OpenMessage {
    /// Unknown if its announcement was not seen.
    id: Option<String>,
    announced: Option<u64>,
    /// The pieces since the last whole block.
    unfinished: Vec<u64>,
}

impl StreamedPieces {
    /// Takes the next message. Only pieces that are `old` become removable.
    pub fn push(&mut self, entry: PieceEntry, old: bool) {
        let PieceEntry {
            seq,
            kind,
            parent,
            piece,
            message,
        } = entry;
        match kind {
            Some(Kind::Assistant) => {
                if let Some(open) = self.open.get_mut(&parent)
                    && (open.id.is_none() || message.is_none() || open.id == message)
                {
                    self.removable.append(&mut open.unfinished);
                }
            }
            Some(Kind::StreamEvent) if piece == Some(StreamEventKind::MessageStart) => {
                let open = OpenMessage {
                    id: message,
                    announced: old.then_some(seq),
                    unfinished: Vec::new(),
                };
                if let Some(before) = self.open.insert(parent, open) {
                    self.close(before);
                }
            }
            Some(Kind::StreamEvent) => {
                let open = self.open.entry(parent.clone()).or_default();
                let ends = matches!(
                    piece,
                    Some(
                        StreamEventKind::ContentBlockStop
                            | StreamEventKind::MessageDelta
                            | StreamEventKind::MessageStop
                    )
                );
                if old {
                    // The end of a block goes with the block.
                    let whole = ends && open.unfinished.is_empty();
                    let list = if whole {
                        &mut self.removable
                    } else {
                        &mut open.unfinished
                    };
                    list.push(seq);
                }
                if piece == Some(StreamEventKind::MessageStop)
                    && open.unfinished.is_empty()
                    && let Some(open) = self.open.remove(&parent)
                {
                    self.close(open);
                }
            }
            _ => {}
        }
    }

    /// The message ends here.
    fn close(&mut self, open: OpenMessage) {
        if open.unfinished.is_empty() {
            self.removable.extend(open.announced);
        }
    }

    /// There are no more messages.
    pub fn finish(&mut self) {
        for (_, open) in std::mem::take(&mut self.open) {
            self.close(open);
        }
    }

    /// The first piece that may or may not be needed: the messages so far do not decide it.
    pub fn first_undecided(&self) -> Option<u64> {
        let open = self.open.values();
        open.filter_map(|open| open.announced.or(open.unfinished.first().copied()))
            .min()
    }

    pub fn take_removable(&mut self) -> Vec<u64> {
        std::mem::take(&mut self.removable)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// `piece parent message`, one after the other from 1 on; the pieces that stay.
    fn left(story: &[&str]) -> Vec<usize> {
        let mut pieces = StreamedPieces::default();
        for (index, line) in story.iter().enumerate() {
            let mut words = line.split(' ');
            let what = words.next().unwrap();
            let parent = words.next().filter(|parent| *parent != "-");
            let message = words.next();
            let json = if what == "assistant" {
                json!({ "type": what, "parent_tool_use_id": parent, "message": { "id": message } })
            } else {
                let event = json!({ "type": what, "message": { "id": message } });
                json!({ "type": "stream_event", "parent_tool_use_id": parent, "event": event })
            };
            let entry = PieceEntry::read(index as u64 + 1, json.to_string().as_bytes());
            pieces.push(entry, true);
        }
        pieces.finish();
        assert_eq!(pieces.first_undecided(), None);
        let removable = pieces.take_removable();
        let is_left =
            |seq: &usize| !removable.contains(&(*seq as u64)) && !story[*seq - 1].starts_with("assistant");
        (1..=story.len()).filter(is_left).collect()
    }

    #[test]
    fn entries_that_are_not_messages_decide_nothing() {
        let deep = format!("{}{}", "[".repeat(1500), "]".repeat(1500));
        for row in [deep.as_str(), r#"["assistant"]"#, r#"{"type":"assistant""#, "x"] {
            assert_eq!(PieceEntry::read(7, row.as_bytes()).kind, None, "{row}");
        }
    }

    const START: &str = "message_start - m1";
    const BLOCK: &str = "content_block_start";
    const DELTA: &str = "content_block_delta";
    const STOP: &str = "content_block_stop";
    const WHOLE: &str = "assistant - m1";

    #[test]
    fn pieces_of_whole_blocks_go() {
        let end = ["message_delta", "message_stop"];
        let one = [START, BLOCK, DELTA, DELTA, WHOLE, STOP, end[0], end[1]];
        assert_eq!(left(&one), [0; 0]);
        let two = [
            START, BLOCK, DELTA, WHOLE, STOP, BLOCK, DELTA, WHOLE, STOP, end[0], end[1],
        ];
        assert_eq!(left(&two), [0; 0]);
        let whole_after_the_stop = [START, BLOCK, DELTA, STOP, WHOLE, end[0], end[1]];
        assert_eq!(left(&whole_after_the_stop), [0; 0]);
        let killed_in_between = [START, BLOCK, DELTA, WHOLE, STOP];
        assert_eq!(left(&killed_in_between), [0; 0]);
        let from_the_middle = [DELTA, DELTA, WHOLE, STOP, end[0], end[1]];
        assert_eq!(left(&from_the_middle), [0; 0]);
    }

    #[test]
    fn pieces_without_a_whole_block_stay() {
        let next = ["message_start - m2", BLOCK, "assistant - m2"];
        let killed = [START, BLOCK, DELTA];
        assert_eq!(left(&killed), [1, 2, 3]);
        assert_eq!(left(&[&killed[..], &next].concat()), [1, 2, 3]);
        let in_the_second_block = [START, BLOCK, DELTA, WHOLE, STOP, BLOCK, DELTA];
        assert_eq!(left(&[&in_the_second_block[..], &next].concat()), [1, 6, 7]);
        let by_another = [START, BLOCK, DELTA, "assistant - made-up"];
        assert_eq!(left(&by_another), [1, 2, 3]);
    }

    #[test]
    fn agents_that_stream_at_the_same_time_are_told_apart() {
        let story = [
            START,
            "message_start t1 m9",
            DELTA,
            "content_block_delta t1",
            WHOLE,
            "content_block_delta t1",
        ];
        assert_eq!(left(&story), [2, 4, 6]);
    }
}
