//! Which pieces of streamed messages are no longer needed: those whose whole block is in the log.
//!
//! An agent announces a message (`message_start`), streams one block of it after the other, and says each block once more
//! as a whole (`assistant`). Agents that it has started do the same beside it, told apart by the call that started them.
//! What was streamed and never said as a whole, because the turn was killed, is all that is left of it, and stays.

use std::collections::HashMap;

use tiller_message::{Kind, Message, StreamEventKind};

/// The fields of a message that decide which pieces are needed.
#[derive(Debug, Default)]
pub(super) struct Said {
    pub(super) seq: u64,
    /// `None` if the row is no message.
    pub(super) kind: Option<Kind>,
    /// The call that started the subagent which wrote the message; `None` for the main agent.
    pub(super) parent: Option<String>,
    /// The kind of a piece.
    pub(super) piece: Option<StreamEventKind>,
    /// The id of the model message that it announces, or is a block of.
    pub(super) message: Option<String>,
}

impl Said {
    /// Reads a row of the log. A row that can't be read says nothing, and stays.
    pub(super) fn read(seq: u64, data: &[u8]) -> Self {
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

/// Reads the messages of a session in order.
#[derive(Debug, Default)]
pub(super) struct Pieces {
    /// The message that each agent is streaming.
    open: HashMap<Option<String>, Open>,
    /// Not needed any more.
    needless: Vec<u64>,
}

#[derive(Debug, Default)]
struct Open {
    /// Unknown if its announcement was not seen.
    id: Option<String>,
    announced: Option<u64>,
    /// What was streamed since a block was last said as a whole.
    unsaid: Vec<u64>,
}

impl Pieces {
    /// Takes the next message. Only pieces that are `old` become needless.
    pub(super) fn hear(&mut self, said: Said, old: bool) {
        let Said {
            seq,
            kind,
            parent,
            piece,
            message,
        } = said;
        match kind {
            Some(Kind::Assistant) => {
                if let Some(open) = self.open.get_mut(&parent)
                    && (open.id.is_none() || message.is_none() || open.id == message)
                {
                    self.needless.append(&mut open.unsaid);
                }
            }
            Some(Kind::StreamEvent) if piece == Some(StreamEventKind::MessageStart) => {
                let open = Open {
                    id: message,
                    announced: old.then_some(seq),
                    unsaid: Vec::new(),
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
                    // The ends of what has been said go with it.
                    let whole = ends && open.unsaid.is_empty();
                    let list = if whole {
                        &mut self.needless
                    } else {
                        &mut open.unsaid
                    };
                    list.push(seq);
                }
                if piece == Some(StreamEventKind::MessageStop)
                    && open.unsaid.is_empty()
                    && let Some(open) = self.open.remove(&parent)
                {
                    self.close(open);
                }
            }
            _ => {}
        }
    }

    /// The message ends here.
    fn close(&mut self, open: Open) {
        if open.unsaid.is_empty() {
            self.needless.extend(open.announced);
        }
    }

    /// Nothing more was said.
    pub(super) fn finish(&mut self) {
        for (_, open) in std::mem::take(&mut self.open) {
            self.close(open);
        }
    }

    /// The first piece of which it is not known yet whether it is needed.
    pub(super) fn first_undecided(&self) -> Option<u64> {
        let open = self.open.values();
        open.filter_map(|open| open.announced.or(open.unsaid.first().copied()))
            .min()
    }

    pub(super) fn take_needless(&mut self) -> Vec<u64> {
        std::mem::take(&mut self.needless)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// `piece parent message`, one after the other from 1 on; the pieces that stay.
    fn left(story: &[&str]) -> Vec<usize> {
        let mut pieces = Pieces::default();
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
            let said = Said::read(index as u64 + 1, json.to_string().as_bytes());
            pieces.hear(said, true);
        }
        pieces.finish();
        assert_eq!(pieces.first_undecided(), None);
        let needless = pieces.take_needless();
        let is_left =
            |seq: &usize| !needless.contains(&(*seq as u64)) && !story[*seq - 1].starts_with("assistant");
        (1..=story.len()).filter(is_left).collect()
    }

    #[test]
    fn rows_that_are_no_messages_say_nothing() {
        let deep = format!("{}{}", "[".repeat(1500), "]".repeat(1500));
        for row in [deep.as_str(), r#"["assistant"]"#, r#"{"type":"assistant""#, "x"] {
            assert_eq!(Said::read(7, row.as_bytes()).kind, None, "{row}");
        }
    }

    const START: &str = "message_start - m1";
    const BLOCK: &str = "content_block_start";
    const DELTA: &str = "content_block_delta";
    const STOP: &str = "content_block_stop";
    const WHOLE: &str = "assistant - m1";

    #[test]
    fn pieces_of_what_was_said_as_a_whole_go() {
        let end = ["message_delta", "message_stop"];
        let one = [START, BLOCK, DELTA, DELTA, WHOLE, STOP, end[0], end[1]];
        assert_eq!(left(&one), [0; 0]);
        let two = [
            START, BLOCK, DELTA, WHOLE, STOP, BLOCK, DELTA, WHOLE, STOP, end[0], end[1],
        ];
        assert_eq!(left(&two), [0; 0]);
        let said_after_the_stop = [START, BLOCK, DELTA, STOP, WHOLE, end[0], end[1]];
        assert_eq!(left(&said_after_the_stop), [0; 0]);
        let killed_in_between = [START, BLOCK, DELTA, WHOLE, STOP];
        assert_eq!(left(&killed_in_between), [0; 0]);
        let from_the_middle = [DELTA, DELTA, WHOLE, STOP, end[0], end[1]];
        assert_eq!(left(&from_the_middle), [0; 0]);
    }

    #[test]
    fn pieces_of_what_was_never_said_as_a_whole_stay() {
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
