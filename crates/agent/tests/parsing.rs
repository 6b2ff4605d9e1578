//! Any bytes, in any pieces: framing, parsing, typed records and the assembling of stream events.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that fails should say so"
)]

use bytes::Bytes;
use proptest::prelude::*;
use serde_json::{Map, Value, json};
use tiller_agent::message::{Assembled, Assembler, Block, Body, Delta, DeltaKind, Kind, Message, ParseError};
use tiller_agent::process::{Frame, Framer};

/// Everything that a framer finds in these pieces.
fn frames(limit: usize, pieces: &[&[u8]]) -> Vec<Frame> {
    let mut framer = Framer::new(limit);
    let mut found = Vec::new();
    for piece in pieces {
        framer.push(piece);
        while let Some(frame) = framer.next_frame() {
            found.push(frame);
        }
    }
    found.extend(framer.finish());
    found
}

/// What framing means, in the simplest words.
fn expected_frames(limit: usize, bytes: &[u8]) -> Vec<Frame> {
    bytes
        .split(|byte| *byte == b'\n')
        .filter_map(|line| {
            let whole = line.len();
            let line = line.strip_suffix(b"\r").unwrap_or(line);
            match line.len() {
                0 => None,
                length if length > limit => Some(Frame::Oversized { length: whole as u64 }),
                _ => Some(Frame::Line(Bytes::copy_from_slice(line))),
            }
        })
        .collect()
}

/// The length of an oversized line is told with or without its `\r`, depending on when it was noticed.
fn comparable(frames: Vec<Frame>) -> Vec<(Option<Bytes>, u64)> {
    frames
        .into_iter()
        .map(|frame| match frame {
            Frame::Line(line) => (Some(line), 0),
            Frame::Oversized { length } => (None, length),
        })
        .collect()
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        (-1e9f64..1e9).prop_map(Value::from),
        ".*".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 32, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            prop::collection::btree_map(key(), inner, 0..6)
                .prop_map(|fields| Value::Object(fields.into_iter().collect())),
        ]
    })
}

/// Keys that mean something to the crate come up often, with values of every type.
fn key() -> impl Strategy<Value = String> {
    let known = [
        "type",
        "subtype",
        "uuid",
        "session_id",
        "message",
        "content",
        "usage",
        "result",
        "errors",
        "event",
        "delta",
        "index",
        "text",
        "id",
        "input",
        "tools",
        "is_error",
        "modelUsage",
        "permissionMode",
        "mcp_servers",
        "parent_tool_use_id",
    ];
    prop_oneof![
        prop::sample::select(known.to_vec()).prop_map(str::to_owned),
        "[a-z\\\\\"é]{0,8}"
    ]
}

fn any_message() -> impl Strategy<Value = Map<String, Value>> {
    let types = [
        "assistant",
        "user",
        "result",
        "system",
        "stream_event",
        "tool_progress",
        "rate_limit_event",
        "command_lifecycle",
        "something_new",
    ];
    let subtypes = [
        "init",
        "status",
        "task_started",
        "compact_boundary",
        "api_retry",
        "hook_response",
        "new_one",
    ];
    let fields = prop::collection::btree_map(key(), any_json(), 0..10);
    (
        prop::sample::select(types.to_vec()),
        prop::option::of(prop::sample::select(subtypes.to_vec())),
        fields,
    )
        .prop_map(|(name, subtype, fields)| {
            let mut fields: Map<String, Value> = fields.into_iter().collect();
            fields.insert("type".to_owned(), json!(name));
            if let Some(subtype) = subtype {
                fields.insert("subtype".to_owned(), json!(subtype));
            }
            fields
        })
}

/// A content block as the model would finish it, and the texts that can be cut into deltas.
fn any_block() -> impl Strategy<Value = Value> {
    let input = prop::collection::btree_map("[a-z]{1,5}", ".{0,12}", 0..4);
    prop_oneof![
        ".{1,40}".prop_map(|text| json!({ "type": "text", "text": text })),
        (".{1,40}", "[A-Za-z0-9+/]{1,20}")
            .prop_map(|(thinking, signature)| json!({ "type": "thinking", "thinking": thinking, "signature": signature })),
        ("toolu_[a-z0-9]{6}", "[A-Z][a-z]{2,8}", input)
            .prop_map(|(id, name, input)| json!({ "type": "tool_use", "id": id, "name": name, "input": input })),
        "[A-Za-z0-9]{4,20}".prop_map(|data| json!({ "type": "redacted_thinking", "data": data })),
    ]
}

/// Cuts a text where the numbers say, between characters.
fn cut(text: &str, cuts: &[prop::sample::Index]) -> Vec<String> {
    let characters: Vec<char> = text.chars().collect();
    let mut places: Vec<usize> = cuts.iter().map(|cut| cut.index(characters.len() + 1)).collect();
    places.extend([0, characters.len()]);
    places.sort_unstable();
    places
        .windows(2)
        .map(|pair| characters[pair[0]..pair[1]].iter().collect())
        .collect()
}

fn stream_line(event: &Value, parent: Option<&str>) -> Message {
    let line =
        json!({ "type": "stream_event", "event": event, "parent_tool_use_id": parent, "session_id": "s" });
    Message::parse(line.to_string()).expect("a message")
}

/// The events with which a model would send these blocks.
fn events(blocks: &[Value], cuts: &[prop::sample::Index]) -> Vec<Value> {
    let mut events = vec![json!({
        "type": "message_start",
        "message": { "id": "msg_1", "model": "m", "role": "assistant", "content": [], "usage": { "input_tokens": 7, "output_tokens": 1 } },
    })];
    for (index, block) in blocks.iter().enumerate() {
        let (start, texts) = match block["type"].as_str().expect("a type") {
            "text" => (
                json!({ "type": "text", "text": "" }),
                vec![("text_delta", "text", block["text"].clone())],
            ),
            "thinking" => (
                json!({ "type": "thinking", "thinking": "", "signature": "" }),
                vec![
                    ("thinking_delta", "thinking", block["thinking"].clone()),
                    ("signature_delta", "signature", block["signature"].clone()),
                ],
            ),
            "tool_use" => {
                let mut start = block.clone();
                start["input"] = json!({});
                (
                    start,
                    vec![(
                        "input_json_delta",
                        "partial_json",
                        json!(block["input"].to_string()),
                    )],
                )
            }
            _ => (block.clone(), Vec::new()),
        };
        events.push(json!({ "type": "content_block_start", "index": index, "content_block": start }));
        for (kind, field, text) in texts {
            for piece in cut(text.as_str().expect("a text"), cuts) {
                events.push(json!({ "type": "content_block_delta", "index": index, "delta": { "type": kind, field: piece } }));
            }
        }
        events.push(json!({ "type": "content_block_stop", "index": index }));
    }
    events.push(json!({
        "type": "message_delta",
        "delta": { "stop_reason": "end_turn", "stop_sequence": null },
        "usage": { "input_tokens": null, "output_tokens": 42 },
    }));
    events.push(json!({ "type": "message_stop" }));
    events
}

proptest! {
    #[test]
    fn lines_are_the_same_however_they_are_split(
        bytes in prop::collection::vec(prop_oneof![Just(b'\n'), Just(b'\r'), Just(b'x'), any::<u8>()], 0..200),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..8),
        limit in 1usize..40,
    ) {
        let mut places: Vec<usize> = cuts.iter().map(|cut| cut.index(bytes.len() + 1)).collect();
        places.extend([0, bytes.len()]);
        places.sort_unstable();
        let pieces: Vec<&[u8]> = places.windows(2).map(|pair| &bytes[pair[0]..pair[1]]).collect();
        let found = comparable(frames(limit, &pieces));
        let expected = comparable(expected_frames(limit, &bytes));
        prop_assert_eq!(found.len(), expected.len());
        for (found, expected) in found.iter().zip(&expected) {
            prop_assert_eq!(&found.0, &expected.0);
            prop_assert!(expected.1.abs_diff(found.1) <= 1, "{:?} {:?}", found, expected);
        }
    }

    #[test]
    fn any_bytes_are_a_message_or_an_error(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        if let Ok(message) = Message::parse(bytes.clone()) {
            prop_assert_eq!(message.json().as_bytes(), &bytes[..]);
        }
    }

    #[test]
    fn the_head_says_what_the_json_says(fields in any_message()) {
        let line = Value::Object(fields.clone()).to_string();
        let message = Message::parse(line.clone()).expect("a message");
        prop_assert_eq!(message.json(), line.as_str());
        let text = |name: &str| fields.get(name).and_then(Value::as_str);
        prop_assert_eq!(Some(message.type_name()), text("type"));
        prop_assert_eq!(message.subtype(), text("subtype"));
        prop_assert_eq!(message.uuid(), text("uuid"));
        prop_assert_eq!(message.session_id(), text("session_id"));
        prop_assert_eq!(message.parent_tool_use_id(), text("parent_tool_use_id"));
        prop_assert_eq!(serde_json::to_string(&message).expect("JSON"), line);
    }

    #[test]
    fn no_field_is_lost_whatever_it_holds(fields in any_message()) {
        let message = Message::parse(Value::Object(fields.clone()).to_string()).expect("a message");
        let body = serde_json::to_value(message.body()).expect("JSON");
        prop_assert!(same(&body, &Value::Object(fields.clone())), "{} became {}", Value::Object(fields), body);
    }

    #[test]
    fn a_message_is_put_together_from_any_pieces(
        blocks in prop::collection::vec(any_block(), 1..5),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..12),
        other_cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..12),
    ) {
        // The main agent and a subagent write the same at the same time, cut differently.
        let mine = events(&blocks, &cuts);
        let others = events(&blocks, &other_cuts);
        let mut assembler = Assembler::new();
        let (mut finished, mut messages) = (Vec::new(), Vec::new());
        for number in 0..mine.len().max(others.len()) {
            for (events, parent) in [(&mine, None), (&others, Some("toolu_parent"))] {
                let Some(event) = events.get(number) else { continue };
                match assembler.push(&stream_line(event, parent)) {
                    Some(Assembled::Block { message_id, index, block }) => {
                        prop_assert_eq!(message_id, "msg_1");
                        if parent.is_none() {
                            finished.push((index, block));
                        }
                    }
                    Some(Assembled::Message(message)) => messages.push(message),
                    None => {}
                }
            }
        }
        let expected: Vec<Block> = blocks.iter().map(|block| serde_json::from_value(block.clone()).expect("a block")).collect();
        prop_assert_eq!(finished.into_iter().map(|(_, block)| block).collect::<Vec<_>>(), expected.clone());
        prop_assert_eq!(messages.len(), 2);
        for message in messages {
            prop_assert_eq!(&message.content, &expected);
            prop_assert_eq!(message.stop_reason.as_deref(), Some("end_turn"));
            prop_assert_eq!((message.usage.input_tokens, message.usage.output_tokens), (7, 42));
        }
        prop_assert_eq!(assembler.partial(None), None);
    }
}

/// Equal as JSON, where `1` and `1.0` are the same number.
fn same(left: &Value, right: &Value) -> bool {
    match (left, right) {
        (Value::Number(left), Value::Number(right)) => left == right || left.as_f64() == right.as_f64(),
        (Value::Array(left), Value::Array(right)) => {
            left.len() == right.len() && left.iter().zip(right).all(|(left, right)| same(left, right))
        }
        (Value::Object(left), Value::Object(right)) => {
            left.len() == right.len()
                && left
                    .iter()
                    .all(|(name, left)| right.get(name).is_some_and(|right| same(left, right)))
        }
        _ => left == right,
    }
}

#[test]
fn recorded_output_of_both_versions_loses_nothing() {
    for (version, recorded) in [
        ("2.1.325", include_str!("recorded/2.1.325.jsonl")),
        ("2.1.113", include_str!("recorded/2.1.113.jsonl")),
    ] {
        let mut kinds = std::collections::BTreeSet::new();
        let mut assembler = Assembler::new();
        let mut assembled: Vec<Block> = Vec::new();
        let mut whole: Vec<Block> = Vec::new();
        for line in recorded.lines() {
            let message = Message::parse(line).unwrap_or_else(|error| panic!("{version}: {error}: {line}"));
            let original: Value = serde_json::from_str(line).unwrap();
            let body = message.body();
            assert!(!matches!(body, Body::Other(_)), "{version}: {line}");
            assert!(
                !matches!(body, Body::System(tiller_agent::message::SystemMessage::Other(_))),
                "{version}: {line}"
            );
            let written = serde_json::to_value(&body).unwrap();
            assert!(same(&written, &original), "{version}: {line}\nbecame {written}");
            kinds.insert((
                message.type_name().to_owned(),
                message.subtype().map(str::to_owned),
            ));
            if let Some(Assembled::Block { block, .. }) = assembler.push(&message) {
                assembled.push(block);
            }
            if let Body::Assistant(assistant) = body {
                // Without --forward-subagent-text a subagent's words are not streamed.
                if assistant.parent_tool_use_id.is_none() {
                    whole.extend(assistant.message.content);
                }
            }
        }
        assert!(kinds.len() >= 6, "{version}: {kinds:?}");
        assert_eq!(
            assembled, whole,
            "{version}: stream events come to what the CLI's own messages say"
        );
    }
}

#[test]
fn odd_lines_are_told_apart() {
    assert_eq!(
        Message::parse(&b"\xff{}"[..]),
        Err(ParseError::Utf8 { valid_up_to: 0 })
    );
    assert_eq!(Message::parse("[1]"), Err(ParseError::NotAnObject));
    assert!(matches!(
        Message::parse("{\"type\":\"user\""),
        Err(ParseError::Json { .. })
    ));
    for no_type in ["{}", r#"{"type":7}"#, r#"{"type":null}"#, r#"{"type":["user"]}"#] {
        let message = Message::parse(no_type).unwrap();
        assert_eq!(
            (message.kind(), message.type_name()),
            (Kind::Other, ""),
            "{no_type}"
        );
        assert_eq!(message.json(), no_type);
    }
    let twice = Message::parse(r#"{"type":"user","type":"system","session_id":"a\u0062"}"#).unwrap();
    assert_eq!((twice.kind(), twice.session_id()), (Kind::System, Some("ab")));
    let nested = format!(
        r#"{{"type":"user","message":{}{}}}"#,
        "[".repeat(5000),
        "]".repeat(5000)
    );
    assert_eq!(Message::parse(nested), Err(ParseError::TooDeep));
}

#[test]
fn extra_does_not_repeat_the_fields_of_a_record() {
    let line = r#"{"type":"user","parent_tool_use_id":null,"isReplay":false,"new":0,"timestamp":7,
        "message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"t","content":[],"is_error":false}]}}"#;
    let Body::User(mut user) = Message::parse(line).unwrap().body() else {
        panic!("not a user message")
    };
    // `timestamp` has an unexpected type, so the record does not have it.
    assert_eq!(
        user.extra.keys().collect::<Vec<_>>(),
        ["new", "timestamp", "type"]
    );
    let original: serde_json::Value = serde_json::from_str(line).unwrap();
    assert_eq!(serde_json::to_value(&user).unwrap(), original);
    let block = user.message.content.blocks()[0].as_tool_result().unwrap();
    assert_eq!(block.extra.keys().collect::<Vec<_>>(), ["type"]);
    user.is_replay = true;
    assert_eq!(serde_json::to_value(&user).unwrap()["isReplay"], true);
}

#[test]
fn a_delta_is_read_with_the_head() {
    let line = r#"{"event":{"index":2,"delta":{"text":"a\nb","type":"text_delta"}},"type":"stream_event"}"#;
    let message = Message::parse(line).unwrap();
    assert_eq!(
        message.delta(),
        Some(Delta {
            index: 2,
            kind: DeltaKind::Text,
            text: "a\nb"
        })
    );
    let other = Message::parse(line.replace("stream_event", "assistant")).unwrap();
    assert_eq!(other.delta(), None);
}
