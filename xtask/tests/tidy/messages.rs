//! Messages of agents are parsed in `crates/message` only.

use crate::{files, none};

/// Crates whose code uses `tiller-message` to read messages. `crates/agent` has the control protocol, which is not part of
/// the message language; `crates/history` has a scanner of its own, whose tests compare it with `tiller-message`.
const READERS: &[&str] = &[
    "crates/core/src/",
    "crates/server/src/",
    "crates/store/src/",
    "crates/store-suite/src/",
    "crates/tiller/src/",
    "crates/backend-claude/src/",
    "crates/backend-acp/src/",
    "crates/keeper/src/",
];

/// Words of the message language that no contract of ours has: nobody else needs to write them.
const WORDS: &[&str] = &[
    "content_block_delta",
    "content_block_start",
    "content_block_stop",
    "input_json_delta",
    "message_delta",
    "message_start",
    "message_stop",
    "stream_event",
    "structuredPatch",
    "task-notification",
    "text_delta",
    "thinking_delta",
    "tool_use_result",
    "total_cost_usd",
];

/// Fields of messages that contracts of ours also have: they may be written, and derived by serde, but not looked up.
const FIELDS: &[&str] = &[
    "content",
    "duration_api_ms",
    "duration_ms",
    "filePath",
    "is_error",
    "mcp_servers",
    "modelUsage",
    "notebook_path",
    "num_turns",
    "origin",
    "parent_tool_use_id",
    "permission_denials",
    "permissionMode",
    "slash_commands",
    "subtype",
    "tool_use_id",
    "usage",
];

/// Exceptions, with their reasons.
const ALLOWED: &[(&str, &str)] = &[
    // The translation into the message language.
    ("crates/backend-acp/src/", "*"),
    // OpenAPI calls the media types of a body `content`.
    ("crates/server/src/openapi/", "content"),
    // SQL that migrated the rows of an earlier version.
    ("crates/store/src/sqlite/schema.rs", "total_cost_usd"),
    // Tests of stores write messages. The store in memory reads them as every store does.
    ("crates/store-suite/src/contracts/", "*"),
    ("crates/store-suite/src/fixtures.rs", "*"),
];

fn is_allowed(path: &str, word: &str) -> bool {
    ALLOWED
        .iter()
        .any(|(place, allowed)| path.starts_with(place) && (*allowed == "*" || *allowed == word))
}

/// The code of a file with its line numbers, without comments and tests.
fn code(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let end = text.find("#[cfg(test)]\nmod tests {").unwrap_or(text.len());
    text[..end]
        .lines()
        .enumerate()
        .map(|(index, line)| (index + 1, line))
        .filter(|(_, line)| !line.trim_start().starts_with("//"))
}

/// The word of the message language that a line reads, if any.
fn read_in(line: &str) -> Option<&'static str> {
    let word = WORDS.iter().find(|word| {
        // Also within a longer text, such as a search pattern.
        line.contains(&format!("\"{word}\"")) || line.contains(&format!("\\\"{word}\\\""))
    });
    let field = FIELDS.iter().find(|field| {
        [
            "[\"{}\"]",
            "get(\"{}\")",
            "get_mut(\"{}\")",
            "remove(\"{}\")",
            "pointer(\"/{}",
        ]
        .iter()
        .any(|form| line.contains(&form.replace("{}", field)))
    });
    word.or(field).copied()
}

#[test]
fn messages_are_read_in_one_crate() {
    let mut findings = Vec::new();
    let mut looked_at = 0;
    for file in files() {
        let is_reader = READERS.iter().any(|place| file.path.starts_with(place));
        let is_test = file.path.contains("/tests") || file.path.contains("_tests");
        if !is_reader || is_test || !file.has_extension(&["rs"]) {
            continue;
        }
        looked_at += 1;
        for (number, line) in code(&file.text) {
            if let Some(word) = read_in(line).filter(|word| !is_allowed(&file.path, word)) {
                findings.push(format!("{}:{number} reads `{word}`", file.path));
            }
        }
    }
    assert!(looked_at > 50, "the readers' code is not found");
    none(
        &findings,
        "messages are read by name here: use or extend the types and projections of crates/message",
    );
}

#[test]
fn readers_are_found_in_every_form() {
    for line in [
        r#"let text = message["message"]["content"].as_str();"#,
        r#"if kind == "stream_event" {"#,
        r#"raw.contains("total_cost_usd")"#,
        r#"block.get("tool_use_id")"#,
        r#"value.pointer("/usage/input_tokens")"#,
        r#"const START: &str = "{\"type\":\"stream_event\"";"#,
    ] {
        assert!(read_in(line).is_some(), "{line}");
    }
    for line in [
        r#"json!({ "tool_use_id": id, "is_error": false })"#,
        "let streamed = client.streamed();",
        r#"#[serde(rename = "permissionMode")]"#,
    ] {
        assert_eq!(read_in(line), None, "{line}");
    }
    let text = "a\n// \"stream_event\"\n#[cfg(test)]\nmod tests {\n\"stream_event\"\n}";
    assert_eq!(code(text).collect::<Vec<_>>(), [(1, "a")]);
}
