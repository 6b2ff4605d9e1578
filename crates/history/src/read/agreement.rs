//! The scanner reads a few keys of a line in its own way, because lists need nothing else. These tests compare it with
//! `tiller-message` on the same lines.

use proptest::prelude::*;
use serde_json::{Value, json};
use tiller_message::{Block, Body, Content, Message};

use crate::read::json::{Raw, text_of};
use crate::read::record::{Kind, Record};
use crate::search::text;

fn word() -> impl Strategy<Value = String> {
    prop_oneof![
        "[a-z]{1,12}",
        any::<String>(),
        Just("a \"quoted\" \\ {[,:]} line\nand 登录页面".to_owned()),
    ]
}

fn block() -> impl Strategy<Value = Value> {
    let inner = word().prop_map(|text| json!({"type": "text", "text": text}));
    prop_oneof![
        word().prop_map(|text| json!({"type": "text", "text": text})),
        word().prop_map(|text| json!({"type": "thinking", "thinking": text, "signature": "s"})),
        (word(), word(), word()).prop_map(|(id, name, text)| json!({"type": "tool_use", "id": format!("i{id}"),
            "name": format!("n{name}"), "input": {"a": text, "b": [1, {"c": text}], "d": null}})),
        (word(), word()).prop_map(|(id, text)| json!({"type": "tool_result", "tool_use_id": format!("i{id}"), "content": text})),
        (word(), prop::collection::vec(inner, 0..3))
            .prop_map(|(id, content)| json!({"type": "tool_result", "tool_use_id": format!("i{id}"), "content": content})),
        Just(json!({"type": "image", "source": {"type": "base64", "data": "AAAA"}})),
        word().prop_map(|text| json!({"type": "of-tomorrow", "text": text})),
    ]
}

fn line() -> impl Strategy<Value = Value> {
    (
        any::<bool>(),
        word(),
        word(),
        prop::collection::vec(block(), 0..4),
        any::<[u32; 4]>(),
        prop::option::of(word()),
    )
        .prop_map(|(is_user, uuid, model, blocks, tokens, plain)| {
            let [input, output, written, read] = tokens;
            let usage = json!({"input_tokens": input, "output_tokens": output,
                "cache_creation_input_tokens": written, "cache_read_input_tokens": read});
            let content = match plain.filter(|_| is_user) {
                Some(text) => json!(text),
                None => json!(blocks),
            };
            json!({"type": if is_user { "user" } else { "assistant" }, "uuid": uuid, "isSidechain": false,
                "message": {"id": format!("m{uuid}"), "model": model, "content": content, "usage": usage},
                "timestamp": "2026-11-15T22:14:20.809Z", "later": {"type": "user", "uuid": "of something else"}})
        })
}

/// The searchable text of blocks.
fn searchable(blocks: &[Block], out: &mut String) {
    for block in blocks {
        match block {
            Block::Text(block) => push(&block.text, out),
            Block::Thinking(block) => push(&block.thinking, out),
            Block::ToolUse(call) => {
                push(&call.name, out);
                strings(&call.input, out);
            }
            Block::ToolResult(result) => match &result.content {
                Content::Text(text) => push(text, out),
                Content::Blocks(blocks) => searchable(blocks, out),
            },
            _ => {}
        }
    }
}

fn push(text: &str, out: &mut String) {
    out.push_str(text);
    out.push('\n');
}

fn strings(value: &Value, out: &mut String) {
    match value {
        Value::String(text) => push(text, out),
        Value::Array(items) => items.iter().for_each(|item| strings(item, out)),
        Value::Object(entries) => entries.values().for_each(|item| strings(item, out)),
        _ => {}
    }
}

proptest! {
    #[test]
    fn scanner_and_messages_read_the_same(value in line()) {
        let line = value.to_string();
        let record = Record::read(line.as_bytes()).unwrap();
        let message = Message::parse(&line).unwrap();
        let uuid = record.uuid.and_then(Raw::text).unwrap();
        prop_assert_eq!(Some(&*uuid), message.uuid());

        let blocks = match message.body() {
            Body::Assistant(said) => {
                prop_assert_eq!(record.kind, Kind::Assistant);
                prop_assert_eq!(text_of(record.message_id.unwrap()), said.message.id);
                prop_assert_eq!(text_of(record.model.unwrap()), said.message.model);
                let usage: Value = serde_json::from_slice(record.usage.unwrap().0).unwrap();
                prop_assert_eq!(usage["input_tokens"].as_u64(), Some(said.message.usage.input_tokens));
                prop_assert_eq!(usage["output_tokens"].as_u64(), Some(said.message.usage.output_tokens));
                said.message.content
            }
            Body::User(said) => {
                prop_assert_eq!(record.kind, Kind::User);
                match said.message.content {
                    Content::Blocks(blocks) => blocks,
                    Content::Text(text) => {
                        prop_assert_eq!(record.content.and_then(Raw::text).unwrap(), text);
                        return Ok(());
                    }
                }
            }
            other => return Err(TestCaseError::fail(format!("{other:?}"))),
        };

        let mut calls = Vec::new();
        text::tool_calls(&record, |id, name| calls.push((text_of(id).into_owned(), text_of(name).into_owned())));
        let expected: Vec<_> = blocks
            .iter()
            .filter(|_| record.kind == Kind::Assistant)
            .filter_map(Block::as_tool_use)
            .map(|call| (call.id.clone(), call.name.clone()))
            .collect();
        prop_assert_eq!(calls, expected);

        let mut answered = Vec::new();
        text::tool_results(&record, |id| answered.push(text_of(id).into_owned()));
        let expected: Vec<_> = blocks
            .iter()
            .filter(|_| record.kind == Kind::User)
            .filter_map(Block::as_tool_result)
            .map(|result| result.tool_use_id.clone())
            .collect();
        prop_assert_eq!(answered, expected);

        let (mut found, mut expected) = (Vec::new(), String::new());
        text::searchable(&record, &mut found);
        searchable(&blocks, &mut expected);
        prop_assert_eq!(String::from_utf8(found).unwrap(), expected);
    }
}
