//! Which pieces of streamed messages are not needed any more: those of which the whole is there.
//!
//! An agent announces a message (`message_start`), streams one block of it after the other, and says each block once more
//! as a whole (`assistant`). Agents that it has started do the same beside it, told apart by the call that started them.
//! What was streamed and never said as a whole, because the turn was killed, is all that is left of it, and stays.

use std::collections::HashMap;

use serde::Deserialize;
use serde_json::value::RawValue;

/// What is to be known of a message of the agent's.
#[derive(Debug, Default)]
pub(super) struct Said {
    pub(super) seq: u64,
    /// Its `type`.
    pub(super) kind: Option<String>,
    /// The call that started the agent which said it; none for the first one.
    pub(super) parent: Option<String>,
    /// Of a piece, what it is a piece of.
    pub(super) piece: Option<String>,
    /// The id of the message that it announces, or is.
    pub(super) message: Option<String>,
}

/// The few fields of a message that count here. Whatever an agent writes there: what is of another type is as good as
/// nothing, so each is read on its own.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Fields<'a> {
    #[serde(borrow)]
    id: Option<&'a RawValue>,
    #[serde(borrow, rename = "type")]
    kind: Option<&'a RawValue>,
    #[serde(borrow, rename = "parent_tool_use_id")]
    parent: Option<&'a RawValue>,
    #[serde(borrow)]
    event: Option<&'a RawValue>,
    #[serde(borrow)]
    message: Option<&'a RawValue>,
}

/// What `value` is, if it is of that type.
fn read<'a, T: Deserialize<'a>>(value: Option<&'a RawValue>) -> Option<T> {
    serde_json::from_str(value?.get()).ok()
}

impl Said {
    /// Reads a message of the log. One that can't be read is none of which anything is known, and stays.
    pub(super) fn read(seq: u64, data: &[u8]) -> Self {
        let whole: Fields<'_> = serde_json::from_slice(data).unwrap_or_default();
        let event: Fields<'_> = read(whole.event).unwrap_or_default();
        let id = |message| read(read::<Fields<'_>>(message)?.id);
        Self {
            seq,
            kind: read(whole.kind),
            parent: read(whole.parent),
            piece: read(event.kind),
            message: id(event.message).or_else(|| id(whole.message)),
        }
    }
}

/// Goes through what was said, in order.
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
    /// Takes what was said next. Pieces are only taken out if they are `old`.
    pub(super) fn hear(&mut self, said: Said, old: bool) {
        let Said {
            seq,
            kind,
            parent,
            piece,
            message,
        } = said;
        match kind.as_deref() {
            Some("assistant") => {
                if let Some(open) = self.open.get_mut(&parent)
                    && (open.id.is_none() || message.is_none() || open.id == message)
                {
                    self.needless.append(&mut open.unsaid);
                }
            }
            Some("stream_event") if piece.as_deref() == Some("message_start") => {
                let open = Open {
                    id: message,
                    announced: old.then_some(seq),
                    unsaid: Vec::new(),
                };
                if let Some(before) = self.open.insert(parent, open) {
                    self.close(before);
                }
            }
            Some("stream_event") => {
                let open = self.open.entry(parent.clone()).or_default();
                let ends = matches!(
                    piece.as_deref(),
                    Some("content_block_stop" | "message_delta" | "message_stop")
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
                if piece.as_deref() == Some("message_stop")
                    && open.unsaid.is_empty()
                    && let Some(open) = self.open.remove(&parent)
                {
                    self.close(open);
                }
            }
            _ => {}
        }
    }

    /// There is no more of it.
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
    use super::*;

    /// `piece parent message`, one after the other from 1 on; what is left of them.
    fn left(story: &[&str]) -> Vec<usize> {
        let mut pieces = Pieces::default();
        for (index, line) in story.iter().enumerate() {
            let mut words = line.split(' ').map(str::to_owned);
            let what = words.next();
            let is_whole = what.as_deref() == Some("assistant");
            let said = Said {
                seq: index as u64 + 1,
                kind: Some(if is_whole { "assistant" } else { "stream_event" }.to_owned()),
                piece: what.filter(|_| !is_whole),
                parent: words.next().filter(|parent| parent != "-"),
                message: words.next(),
            };
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
    fn what_counts_is_read_from_anything_that_an_agent_writes() {
        let read = |json: &str| {
            let said = Said::read(7, json.as_bytes());
            [said.kind, said.parent, said.piece, said.message].map(Option::unwrap_or_default)
        };
        let deep = format!("{}{}", "[".repeat(1500), "]".repeat(1500));
        let start = r#"{"type":"message_start","index":0,"message":{"content":[],"id":"m1"}}"#;
        let cases = [
            (
                format!(r#"{{"parent_tool_use_id":"t1","event":{start},"type":"stream_event"}}"#),
                ["stream_event", "t1", "message_start", "m1"],
            ),
            (
                format!(r#"{{"type":"assistant","message":{{"id":"m1","content":[{{"input":{deep}}}]}}}}"#),
                ["assistant", "", "", "m1"],
            ),
            (
                format!(r#"{{"type":"stream_event","event":{deep},"parent_tool_use_id":null}}"#),
                ["stream_event", "", "", ""],
            ),
            (
                r#"{"type":"a\u0062","event":"x","message":1}"#.to_owned(),
                ["ab", "", "", ""],
            ),
            (r#"{"type":["assistant"]}"#.to_owned(), [""; 4]),
            (r#"["assistant"]"#.to_owned(), [""; 4]),
            (deep.clone(), [""; 4]),
            (r#"{"type":"assistant""#.to_owned(), [""; 4]),
        ];
        for (json, expected) in cases {
            assert_eq!(read(&json), expected, "{json}");
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
