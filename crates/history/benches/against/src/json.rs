//! Reading the keys of lines, and the text of messages: the history's scanner, sonic-rs and serde_json.

use std::borrow::Cow;
use std::hint::black_box;
use std::path::Path;

use serde::Deserialize;
use serde_json::value::RawValue;
use sonic_rs::LazyValue;
use tiller_history::against;

use crate::{measured, speed};

pub(crate) const TASKS: [&str; 7] = [
    "json lines only",
    "json keys: ours",
    "json keys: sonic-rs",
    "json keys: serde_json",
    "json text: ours",
    "json text: sonic-rs",
    "json text: serde_json",
];

/// The keys that lists and search need.
#[derive(Deserialize)]
#[serde(bound(deserialize = "R: Deserialize<'de>"))]
struct Line<'a, R> {
    #[serde(borrow, rename = "type")]
    kind: Option<Cow<'a, str>>,
    #[serde(borrow)]
    uuid: Option<Cow<'a, str>>,
    #[serde(borrow)]
    timestamp: Option<Cow<'a, str>>,
    #[serde(borrow)]
    cwd: Option<Cow<'a, str>>,
    #[serde(default, rename = "isSidechain")]
    is_sidechain: bool,
    message: Option<Message<'a, R>>,
}

#[derive(Deserialize)]
#[serde(bound(deserialize = "R: Deserialize<'de>"))]
struct Message<'a, R> {
    #[serde(borrow)]
    model: Option<Cow<'a, str>>,
    content: Option<R>,
}

/// A block of a message's content, for its text.
#[derive(Deserialize)]
#[serde(bound(deserialize = "R: Deserialize<'de>"))]
struct Block<'a, R> {
    #[serde(borrow, rename = "type")]
    kind: Option<Cow<'a, str>>,
    #[serde(borrow)]
    text: Option<Cow<'a, str>>,
    #[serde(borrow)]
    thinking: Option<Cow<'a, str>>,
    #[serde(borrow)]
    name: Option<Cow<'a, str>>,
    input: Option<serde_json::Value>,
    content: Option<R>,
}

pub(crate) fn run(task: &str, home: &Path) {
    let mut bytes = 0;
    let mut taken = 0u64;
    let mut text = Vec::new();
    let ((), time) = measured(|| {
        against::each_line(home, |line| {
            bytes += line.len() as u64 + 1;
            text.clear();
            match task {
                "json lines only" => {}
                "json keys: ours" => taken += u64::from(black_box(against::fields(line)).is_some()),
                "json keys: sonic-rs" => {
                    taken += u64::from(black_box(sonic_rs::from_slice::<Line<'_, LazyValue<'_>>>(line)).is_ok());
                }
                "json keys: serde_json" => {
                    taken += u64::from(black_box(serde_json::from_slice::<Line<'_, &RawValue>>(line)).is_ok());
                }
                "json text: ours" => against::searchable(line, &mut text),
                "json text: sonic-rs" => sonic_text(line, &mut text),
                _ => serde_text(line, &mut text),
            }
            taken += text.len() as u64;
        })
        .expect("the corpus is read");
    });
    println!("{task:<28} {:>6.0} MB/s   ({taken})", speed(bytes, time));
}

fn is_message<R>(line: &Line<'_, R>) -> bool {
    black_box((&line.uuid, &line.timestamp, &line.cwd, line.is_sidechain));
    matches!(line.kind.as_deref(), Some("user" | "assistant"))
}

fn push(text: &str, out: &mut Vec<u8>) {
    out.extend_from_slice(text.as_bytes());
    out.push(b'\n');
}

fn strings(value: &serde_json::Value, out: &mut Vec<u8>) {
    match value {
        serde_json::Value::String(text) => push(text, out),
        serde_json::Value::Array(items) => items.iter().for_each(|item| strings(item, out)),
        serde_json::Value::Object(entries) => entries.values().for_each(|item| strings(item, out)),
        _ => {}
    }
}

fn block_text<R>(block: &Block<'_, R>, out: &mut Vec<u8>, inner: impl FnOnce(&R, &mut Vec<u8>)) {
    match block.kind.as_deref() {
        Some("text") => block.text.iter().for_each(|text| push(text, out)),
        Some("thinking") => block.thinking.iter().for_each(|text| push(text, out)),
        Some("tool_use") => {
            block.name.iter().for_each(|text| push(text, out));
            block.input.iter().for_each(|input| strings(input, out));
        }
        _ => {
            if let Some(content) = &block.content {
                inner(content, out);
            }
        }
    }
}

fn sonic_text(line: &[u8], out: &mut Vec<u8>) {
    fn pieces(raw: &str, out: &mut Vec<u8>) {
        if raw.starts_with('"') {
            if let Ok(text) = sonic_rs::from_str::<Cow<'_, str>>(raw) {
                push(&text, out);
            }
        } else if let Ok(blocks) = sonic_rs::from_str::<Vec<Block<'_, LazyValue<'_>>>>(raw) {
            for block in &blocks {
                block_text(block, out, |inner, out| pieces(inner.as_raw_str(), out));
            }
        }
    }
    let Ok(line) = sonic_rs::from_slice::<Line<'_, LazyValue<'_>>>(line) else {
        return;
    };
    if is_message(&line)
        && let Some(content) = line.message.and_then(|message| {
            black_box(message.model);
            message.content
        })
    {
        pieces(content.as_raw_str(), out);
    }
}

fn serde_text(line: &[u8], out: &mut Vec<u8>) {
    fn pieces(raw: &str, out: &mut Vec<u8>) {
        if raw.starts_with('"') {
            if let Ok(text) = serde_json::from_str::<Cow<'_, str>>(raw) {
                push(&text, out);
            }
        } else if let Ok(blocks) = serde_json::from_str::<Vec<Block<'_, &RawValue>>>(raw) {
            for block in &blocks {
                block_text(block, out, |inner, out| pieces(inner.get(), out));
            }
        }
    }
    let Ok(line) = serde_json::from_slice::<Line<'_, &RawValue>>(line) else {
        return;
    };
    if is_message(&line)
        && let Some(content) = line.message.and_then(|message| {
            black_box(message.model);
            message.content
        })
    {
        pieces(content.get(), out);
    }
}
