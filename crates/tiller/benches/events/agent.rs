//! An agent that writes messages as fast as its pipe allows, or at a given rate.

use std::io::{BufRead, Write};
use std::time::{Duration, Instant};

/// The number of events, and the rate per second (0: as fast as possible).
pub(crate) const EVENTS: &str = "BENCH_EVENTS";
pub(crate) const PACE: &str = "BENCH_PACE";

pub(crate) fn number(name: &str) -> u64 {
    std::env::var(name)
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or(0)
}

/// Runs until its input ends.
pub(crate) fn play() {
    let (events, pace) = (number(EVENTS), number(PACE));
    let id = std::env::args()
        .find_map(|argument| argument.strip_prefix("--session-id=").map(str::to_owned))
        .unwrap_or_default();
    let mut out = std::io::stdout().lock();
    for line in std::io::stdin().lock().lines() {
        let Ok(line) = line else { return };
        let told = if line.contains("\"type\":\"user\"") {
            tell(&mut out, &id, events, pace)
        } else {
            agree(&mut out, &line)
        };
        if told.is_err() {
            return;
        }
    }
}

/// Accepts every control request.
fn agree(out: &mut impl Write, line: &str) -> std::io::Result<()> {
    let asked: serde_json::Value = serde_json::from_str(line)?;
    let answer = serde_json::json!({
        "type": "control_response",
        "response": { "subtype": "success", "request_id": asked["request_id"], "response": {} },
    });
    writeln!(out, "{answer}")?;
    out.flush()
}

fn tell(out: &mut impl Write, id: &str, events: u64, pace: u64) -> std::io::Result<()> {
    writeln!(
        out,
        r#"{{"type":"system","subtype":"init","session_id":"{id}","cwd":"/","tools":[]}}"#
    )?;
    out.flush()?;
    let start = Instant::now();
    let mut buffer = Vec::with_capacity(64 * 1024);
    for event in 0..events {
        if let Some(interval) = Duration::from_secs(1).checked_div(u32::try_from(pace).unwrap_or(0)) {
            let due = start + interval * u32::try_from(event).unwrap_or(u32::MAX);
            std::thread::sleep(due.saturating_duration_since(Instant::now()));
        }
        let at = super::now();
        // About the length of a streamed piece of text.
        writeln!(
            buffer,
            r#"{{"type":"stream_event","event":{{"type":"content_block_delta","index":0,"delta":{{"type":"text_delta","text":"at {at:020} and"}}}},"session_id":"{id}","parent_tool_use_id":null,"uuid":"00000000-0000-4000-8000-{event:012}"}}"#
        )?;
        if pace > 0 || buffer.len() > 60 * 1024 {
            out.write_all(&buffer)?;
            out.flush()?;
            buffer.clear();
        }
    }
    out.write_all(&buffer)?;
    writeln!(
        out,
        r#"{{"type":"result","subtype":"success","is_error":false,"result":"done","session_id":"{id}","num_turns":1}}"#
    )?;
    out.flush()
}
