//! Renders a session's events as text for a terminal.

use std::fmt::Write as _;

use serde_json::Value;
use tiller_message::{
    Block, Body, DeltaKind, Kind, Message, StreamEventKind, input_fields, is_invisible, visible,
};

/// What one event adds to the screen.
#[derive(Debug, Default, Eq, PartialEq)]
pub(crate) struct Screen {
    /// The agent's own text.
    pub(crate) words: String,
    /// Its actions and their outcomes, as whole lines.
    pub(crate) notes: String,
}

/// Tracks what was streamed.
#[derive(Default)]
pub(crate) struct Renderer {
    /// The message that is being streamed has shown text.
    streamed: bool,
    /// The text so far ends in the middle of a line.
    in_line: bool,
}

/// The longest summary of a tool's input.
const SUMMARY: usize = 120;

impl Renderer {
    pub(crate) fn event(&mut self, event: &Value) -> Screen {
        let payload = &event["payload"];
        let mut screen = Screen::default();
        match event["type"].as_str() {
            Some("stream.message") => {
                if let Ok(message) = Message::of(&payload["message"]) {
                    self.message(&message, &mut screen);
                }
            }
            Some("stream.user_prompt") => {
                let prompt = payload["prompt"].as_str().unwrap_or_default();
                self.note(&format!("> {}", plain(prompt)), &mut screen);
            }
            // The request itself is shown when it is its turn to be answered.
            Some("permission.request") => screen.words.push_str(self.line_end()),
            Some("permission.resolved") => {
                let behavior = payload["behavior"].as_str().unwrap_or_default();
                self.note(&format!("  {behavior}"), &mut screen);
            }
            Some("session.status") if payload["error"].is_string() => {
                let error = payload["error"].as_str().unwrap_or_default();
                self.note(&format!("! {}", plain(error)), &mut screen);
            }
            _ => {}
        }
        screen
    }

    /// Ends an unfinished line of the agent.
    pub(crate) fn line_end(&mut self) -> &'static str {
        if std::mem::take(&mut self.in_line) {
            "\n"
        } else {
            ""
        }
    }

    fn message(&mut self, message: &Message, screen: &mut Screen) {
        if message.parent_tool_use_id().is_some() {
            return;
        }
        match message.kind() {
            Kind::StreamEvent => {
                if message.stream_event_kind() == Some(StreamEventKind::MessageStart) {
                    self.streamed = false;
                }
                if let Some(delta) = message.delta().filter(|delta| delta.kind == DeltaKind::Text) {
                    self.streamed = true;
                    self.words(delta.text, screen);
                }
                if message.stream_event_kind() == Some(StreamEventKind::ContentBlockStop) && self.in_line {
                    self.words("\n", screen);
                }
            }
            Kind::Assistant => {
                let Body::Assistant(assistant) = message.body() else {
                    return;
                };
                for block in &assistant.message.content {
                    match block {
                        Block::Text(text) if !self.streamed => {
                            self.words(&text.text, screen);
                            if self.in_line {
                                self.words("\n", screen);
                            }
                        }
                        Block::ToolUse(tool) => {
                            self.note(&format!("* {}", call(&tool.name, &tool.input)), screen);
                        }
                        _ => {}
                    }
                }
            }
            _ => {}
        }
    }

    fn words(&mut self, text: &str, screen: &mut Screen) {
        let text = plain(text);
        if let Some(last) = text.chars().last() {
            self.in_line = last != '\n';
        }
        screen.words.push_str(&text);
    }

    fn note(&mut self, line: &str, screen: &mut Screen) {
        let end = self.line_end();
        screen.words.push_str(end);
        // Writing to a string can't fail.
        writeln!(screen.notes, "{line}").ok();
    }
}

/// A tool call in one line.
fn call(tool: &str, input: &Value) -> String {
    let told = [
        "command",
        "file_path",
        "path",
        "pattern",
        "url",
        "query",
        "description",
        "prompt",
        "plan",
    ];
    let told = told.iter().find_map(|field| input[field].as_str());
    let detail = told.map_or_else(|| input.to_string(), str::to_owned);
    let mut line: String = plain(&detail)
        .lines()
        .next()
        .unwrap_or_default()
        .chars()
        .take(SUMMARY)
        .collect();
    if line.len() < detail.trim_end().len() {
        line.push('…');
    }
    format!("{} {line}", plain(tool))
}

/// Removes characters that a terminal would interpret or hide: text of a model or a tool must not move the cursor, set
/// a title or change the writing direction.
pub(crate) fn plain(text: &str) -> String {
    // Joiners are part of words in some languages, and of emoji.
    let is_plain =
        |character: &char| matches!(character, '\u{200c}' | '\u{200d}') || !is_invisible(*character);
    text.chars().filter(is_plain).collect()
}

/// A pending decision in full: the tool, every field of its input, and the rules that 'always' would keep.
pub(crate) fn request(request: &Value) -> String {
    let mut text = format!(
        "? {}\n",
        visible(request["toolName"].as_str().unwrap_or_default())
    );
    let mut line = |line: &str| {
        text.push_str(line);
        text.push('\n');
    };
    for field in input_fields(&request["input"]) {
        if field.text.contains('\n') {
            line(&format!("  {}:", field.name));
            for part in field.text.split('\n') {
                line(&format!("  │ {part}"));
            }
        } else if field.name.is_empty() {
            line(&format!("  {}", field.text));
        } else {
            line(&format!("  {}: {}", field.name, field.text));
        }
    }
    for (number, suggestion) in (1..).zip(suggestions(request)) {
        line(&format!("  always {number}: {}", rule(suggestion)));
    }
    text
}

/// The rules that the agent suggests for 'always'.
pub(crate) fn suggestions(request: &Value) -> &[Value] {
    request["suggestions"].as_array().map_or(&[], Vec::as_slice)
}

/// A suggestion in one line, with every field.
fn rule(suggestion: &Value) -> String {
    let fields = input_fields(suggestion).into_iter();
    let fields: Vec<String> = fields
        .map(|field| format!("{} {}", field.name, field.text.replace('\n', "\\n")))
        .collect();
    fields.join(", ")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn message(message: Value) -> Value {
        json!({ "type": "stream.message", "payload": { "message": message } })
    }

    #[test]
    fn streamed_text_is_shown_once() {
        let mut renderer = Renderer::default();
        let piece = |event: Value| message(json!({ "type": "stream_event", "event": event }));
        let whole = |text: &str| {
            message(
                json!({ "type": "assistant", "message": { "content": [{ "type": "text", "text": text }] } }),
            )
        };
        let mut words = String::new();
        for event in [
            piece(json!({ "type": "message_start" })),
            piece(
                json!({ "type": "content_block_delta", "index": 0, "delta": { "type": "text_delta", "text": "Hel" } }),
            ),
            piece(
                json!({ "type": "content_block_delta", "index": 0, "delta": { "type": "text_delta", "text": "lo" } }),
            ),
            whole("Hello"),
            piece(json!({ "type": "content_block_stop" })),
            piece(json!({ "type": "message_start" })),
            whole("Again"),
        ] {
            words += &renderer.event(&event).words;
        }
        assert_eq!(words, "Hello\nAgain\n");
    }

    #[test]
    fn a_call_is_one_line_and_moves_no_cursor() {
        let mut renderer = Renderer::default();
        let input = json!({ "command": "echo \u{1b}[2J\nrm x" });
        let event = message(
            json!({ "type": "assistant", "message": { "content": [{ "type": "tool_use", "name": "Bash", "input": input }] } }),
        );
        assert_eq!(renderer.event(&event).notes, "* Bash echo [2J…\n");
    }

    #[test]
    fn a_request_is_shown_whole_with_the_rules_that_always_would_keep() {
        let request = json!({
            "toolName": "Bash",
            "input": { "command": "npm test\nrm -rf \u{202e}x", "dangerouslyDisableSandbox": true },
            "suggestions": [{ "type": "addRules", "rules": [{ "toolName": "Bash", "ruleContent": "npm test" }] }],
        });
        let shown = "? Bash\n  command:\n  │ npm test\n  │ rm -rf \\u{202e}x\n  dangerouslyDisableSandbox: true\n  always 1: \
                     rules[0].ruleContent npm test, rules[0].toolName Bash, type addRules\n";
        assert_eq!(super::request(&request), shown);
    }
}
