//! How fast lines become messages, and how that compares to what serde_json alone needs for the same fields.
//!
//! `cargo bench -p tiller-agent`. Prints, asserts nothing: machines differ.

#![allow(clippy::expect_used, reason = "a benchmark that fails should say so")]

use std::borrow::Cow;
use std::hint::black_box;
use std::time::{Duration, Instant};

use bytes::Bytes;
use serde::Deserialize;
use tiller_agent::Message;
use tiller_agent::process::{Frame, Framer};

/// What a reader of stream events needs, borrowed from the line.
#[derive(Deserialize)]
struct Line<'a> {
    #[serde(borrow)]
    r#type: &'a str,
    #[serde(borrow, default)]
    subtype: Option<&'a str>,
    #[serde(borrow, default)]
    uuid: Option<&'a str>,
    #[serde(borrow, default)]
    session_id: Option<&'a str>,
    #[serde(borrow, default)]
    parent_tool_use_id: Option<&'a str>,
    #[serde(borrow, default)]
    event: Option<Event<'a>>,
}

#[derive(Deserialize)]
struct Event<'a> {
    #[serde(borrow)]
    r#type: &'a str,
    #[serde(default)]
    index: Option<u32>,
    #[serde(borrow, default)]
    delta: Option<Delta<'a>>,
}

#[derive(Deserialize)]
struct Delta<'a> {
    #[serde(borrow)]
    r#type: &'a str,
    #[serde(borrow, default)]
    text: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    thinking: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    partial_json: Option<Cow<'a, str>>,
}

const WORDS: [&str; 6] = [
    " the parser",
    " reads\\n\\n```rust\\nfn main() {}\\n",
    " lines of any length, and then some more of them",
    " – auch Umlaute: ä ö ü",
    " and 中文 as well",
    ".",
];

/// Lines as the CLI writes them while the model speaks.
fn stream_events(count: usize) -> Vec<Bytes> {
    (0..count)
        .map(|number| {
            let delta = match number % 8 {
                0 => r#"{"type":"input_json_delta","partial_json":"{\"file_path\": \"src/"}"#.to_owned(),
                1 => format!(r#"{{"type":"thinking_delta","thinking":"{}"}}"#, WORDS[number % WORDS.len()]),
                _ => format!(r#"{{"type":"text_delta","text":"{}"}}"#, WORDS[number % WORDS.len()]),
            };
            Bytes::from(format!(
                r#"{{"type":"stream_event","event":{{"type":"content_block_delta","index":{},"delta":{delta}}},"session_id":"0b1f5a52-9a58-4d1c-b4a7-0d6f1c9f{:04x}","parent_tool_use_id":null,"uuid":"7d2a6c1e-53b4-4b8f-9f3e-{:012x}"}}"#,
                number % 4,
                number % 65536,
                number
            ))
        })
        .collect()
}

/// Lines with a whole message each, such as tool results.
fn messages(count: usize) -> Vec<Bytes> {
    let output = "drwxr-xr-x 2 user user 4096 Nov 15 22:05 a folder with a name\\n".repeat(60);
    (0..count)
        .map(|number| {
            Bytes::from(format!(
                r#"{{"type":"user","message":{{"role":"user","content":[{{"tool_use_id":"toolu_{number}","type":"tool_result","content":"{output}","is_error":false}}]}},"parent_tool_use_id":null,"session_id":"0b1f5a52-9a58-4d1c-b4a7-0d6f1c9f0000","uuid":"7d2a6c1e-53b4-4b8f-9f3e-{number:012x}","tool_use_result":{{"stdout":"{output}","stderr":"","interrupted":false,"isImage":false}}}}"#
            ))
        })
        .collect()
}

/// The best of several runs: what the machine can do when nothing else disturbs it.
fn best(mut work: impl FnMut()) -> Duration {
    let start = Instant::now();
    let mut best = Duration::MAX;
    let mut runs = 0;
    while runs < 10 || (start.elapsed() < Duration::from_secs(2) && runs < 200) {
        let run = Instant::now();
        work();
        best = best.min(run.elapsed());
        runs += 1;
    }
    best
}

#[allow(clippy::cast_precision_loss, reason = "a rate for people")]
fn rate(bytes: usize, time: Duration) -> f64 {
    bytes as f64 / 1e6 / time.as_secs_f64()
}

fn compare(name: &str, lines: &[Bytes]) {
    let bytes: usize = lines.iter().map(Bytes::len).sum();
    let mut joined = Vec::with_capacity(bytes + lines.len());
    for line in lines {
        joined.extend_from_slice(line);
        joined.push(b'\n');
    }
    let ours = best(|| {
        for line in lines {
            let message = Message::parse(line.clone()).expect("a message");
            black_box((message.kind(), message.session_id(), message.delta()));
        }
    });
    let theirs = best(|| {
        for line in lines {
            let text = std::str::from_utf8(line).expect("UTF-8");
            let line: Line = serde_json::from_str(text).expect("a message");
            let delta = line.event.as_ref().and_then(|event| {
                black_box((event.r#type, event.index));
                event.delta.as_ref()
            });
            black_box((
                line.r#type,
                line.subtype,
                line.uuid,
                line.session_id,
                line.parent_tool_use_id,
            ));
            black_box(delta.map(|delta| (delta.r#type, &delta.text, &delta.thinking, &delta.partial_json)));
        }
    });
    let framed = best(|| {
        let mut framer = Framer::default();
        for chunk in joined.chunks(64 * 1024) {
            framer.push(chunk);
            while let Some(Frame::Line(line)) = framer.next_frame() {
                black_box(Message::parse(line).expect("a message"));
            }
        }
    });
    println!(
        "{name}: {} lines of {} bytes on average\n  parse {:7.0} MB/s\n  serde_json, same borrowed fields {:7.0} MB/s, we take {:.2} times as long\n  framing and parse {:7.0} MB/s",
        lines.len(),
        bytes / lines.len(),
        rate(bytes, ours),
        rate(bytes, theirs),
        ours.as_secs_f64() / theirs.as_secs_f64(),
        rate(joined.len(), framed),
    );
}

fn main() {
    compare("stream_event", &stream_events(20_000));
    compare("tool results", &messages(1_000));
}
