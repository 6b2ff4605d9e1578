//! A request of the CLI, and what a script needs to know about it.

use serde::Serialize;
use serde_json::Value;

/// A recorded model call.
#[derive(Clone, Debug, Serialize)]
pub struct ModelRequest {
    /// The request's body as it came.
    pub body: Value,
    /// The CLI's session, from its own header.
    pub session_id: Option<String>,
    /// The prompt of the turn that the call belongs to, without the CLI's reminders.
    pub prompt: String,
    pub answered_by: AnsweredBy,
}

/// Which part of the script answered a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum AnsweredBy {
    /// The reply of that number of the rule of that number, both from 0.
    Rule { rule: usize, reply: usize },
    /// The reply of that number of the queue.
    Queue { reply: usize },
    /// The script had nothing left for it.
    Otherwise,
    /// A request beside the conversation, such as for a title; scripts do not see it.
    Side,
}

impl ModelRequest {
    /// The results of tools that came with this call, as text, in order.
    pub fn tool_results(&self) -> Vec<String> {
        tool_results(&self.body)
    }

    /// All prompts of this conversation, oldest first.
    pub fn prompts(&self) -> Vec<String> {
        prompt_texts(messages(&self.body))
    }
}

/// What determines the reply.
#[derive(Debug)]
pub(crate) struct Conversation {
    /// The texts that the user sent for this turn, the newest last; a message may have several.
    pub(crate) turn_prompts: Vec<String>,
    /// How many texts the user has sent in all. It distinguishes a turn from a later one with the same prompt.
    pub(crate) prompt_count: usize,
}

impl Conversation {
    pub(crate) fn of(body: &Value) -> Self {
        let messages = messages(body);
        // In later calls of a turn only tool results follow the last assistant message, so the turn's own prompt is the
        // last typed text.
        let turn_prompts = messages
            .iter()
            .rev()
            .map(|message| {
                let texts = typed_texts(std::slice::from_ref(message));
                // A prompt that was stopped before the model answered shares the message with the next one.
                let mut after_stop: Vec<String> = texts
                    .into_iter()
                    .rev()
                    .take_while(|text| !is_stop_note(text))
                    .collect();
                after_stop.reverse();
                after_stop
            })
            .find(|texts| !texts.is_empty())
            .unwrap_or_default();
        Self {
            turn_prompts,
            prompt_count: prompt_texts(messages).len(),
        }
    }

    pub(crate) fn prompt(&self) -> &str {
        self.turn_prompts.last().map_or("", String::as_str)
    }
}

/// Whether the CLI asks this beside the conversation: titles, topics, summaries of web pages. Such a call has no tools,
/// and neither thinking nor context management, which a conversation without tools still has.
pub(crate) fn is_side_request(body: &Value, from_cli: bool) -> bool {
    let has_tools = body["tools"].as_array().is_some_and(|tools| !tools.is_empty());
    let structured = !body["output_config"]["format"].is_null();
    let conversational = !body["thinking"].is_null() || !body["context_management"].is_null();
    from_cli && !has_tools && (structured || !conversational)
}

/// An answer to a side request that matches the requested schema, if any.
pub(crate) fn side_answer(body: &Value) -> String {
    let schema = &body["output_config"]["format"]["schema"];
    if schema.is_null() {
        "ok".to_owned()
    } else {
        example_of(schema).to_string()
    }
}

fn example_of(schema: &Value) -> Value {
    match schema["type"].as_str() {
        Some("object") => schema["properties"]
            .as_object()
            .map(|properties| {
                properties
                    .iter()
                    .map(|(name, schema)| (name.clone(), example_of(schema)))
                    .collect()
            })
            .unwrap_or_default(),
        Some("string") => match &schema["enum"] {
            Value::Array(values) if !values.is_empty() => values[0].clone(),
            _ => Value::from("Scripted"),
        },
        Some("boolean") => Value::from(false),
        Some("number" | "integer") => Value::from(0),
        Some("array") => Value::Array(Vec::new()),
        _ => Value::Null,
    }
}

/// Fills the placeholders of a scripted text.
pub(crate) fn fill(text: &str, body: &Value) -> String {
    if !text.contains("{{") {
        return text.to_owned();
    }
    let prompt = Conversation::of(body).prompt().to_owned();
    text.replace("{{tool_result}}", &tool_results(body).join("\n"))
        .replace("{{prompts}}", &prompt_texts(messages(body)).join(" | "))
        .replace("{{prompt}}", &prompt)
}

fn messages(body: &Value) -> &[Value] {
    body["messages"].as_array().map_or(&[], Vec::as_slice)
}

/// The texts in these messages that a user typed.
fn prompt_texts(messages: &[Value]) -> Vec<String> {
    let mut texts = typed_texts(messages);
    texts.retain(|text| !is_stop_note(text));
    texts
}

/// The CLI's own note about a stopped turn, which the user did not type.
fn is_stop_note(text: &str) -> bool {
    text.starts_with("[Request interrupted")
}

fn typed_texts(messages: &[Value]) -> Vec<String> {
    messages
        .iter()
        .filter(|message| message["role"] == "user")
        .flat_map(|message| match &message["content"] {
            Value::String(text) => vec![text.as_str()],
            Value::Array(blocks) => blocks.iter().filter_map(|block| block["text"].as_str()).collect(),
            _ => Vec::new(),
        })
        .map(|text| without_reminders(text).trim().to_owned())
        .filter(|text| !text.is_empty())
        .collect()
}

fn without_reminders(text: &str) -> String {
    const START: &str = "<system-reminder>";
    const END: &str = "</system-reminder>";
    let mut rest = text;
    let mut kept = String::new();
    while let Some((before, after_start)) = rest.split_once(START) {
        kept.push_str(before);
        rest = after_start.split_once(END).map_or("", |(_, after_end)| after_end);
    }
    kept.push_str(rest);
    kept
}

/// The tool results after the last message of the assistant.
fn tool_results(body: &Value) -> Vec<String> {
    let mut results: Vec<String> = messages(body)
        .iter()
        .rev()
        .take_while(|message| message["role"] != "assistant")
        .filter_map(|message| message["content"].as_array())
        .flat_map(|blocks| blocks.iter().rev())
        .filter(|block| block["type"] == "tool_result")
        .map(|block| match &block["content"] {
            Value::String(text) => text.clone(),
            Value::Array(parts) => parts
                .iter()
                .filter_map(|part| part["text"].as_str())
                .collect::<Vec<_>>()
                .join("\n"),
            _ => String::new(),
        })
        .collect();
    results.reverse();
    results
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn conversation() -> Value {
        json!({"messages": [
            {"role": "user", "content": [
                {"type": "text", "text": "<system-reminder>\nbe nice\n</system-reminder>\n"},
                {"type": "text", "text": "first"},
            ]},
            {"role": "system", "content": "# Environment"},
            {"role": "assistant", "content": [{"type": "tool_use", "id": "a"}, {"type": "tool_use", "id": "b"}]},
            {"role": "user", "content": [
                {"type": "tool_result", "tool_use_id": "a", "content": "one"},
                {"type": "tool_result", "tool_use_id": "b", "content": [{"type": "text", "text": "two"}]},
                {"type": "text", "text": "<system-reminder>later</system-reminder>"},
            ]},
        ]})
    }

    #[test]
    fn later_calls_of_a_turn_belong_to_its_prompt() {
        let conversation = Conversation::of(&conversation());
        assert_eq!(conversation.prompt(), "first");
        assert_eq!(conversation.prompt_count, 1);
    }

    #[test]
    fn tool_results_come_in_order() {
        assert_eq!(tool_results(&conversation()), ["one", "two"]);
        assert_eq!(
            fill("{{prompt}}: {{tool_result}}", &conversation()),
            "first: one\ntwo"
        );
    }

    #[test]
    fn a_prompt_after_a_stopped_turn_is_the_newest_text() {
        let body = json!({"messages": [{"role": "user", "content": [
            {"type": "text", "text": "old"},
            {"type": "text", "text": "[Request interrupted by user]"},
            {"type": "text", "text": "new"},
        ]}]});
        let conversation = Conversation::of(&body);
        assert_eq!(conversation.turn_prompts, ["new"]);
        assert_eq!(conversation.prompt_count, 2);
    }

    #[test]
    fn a_title_request_is_a_side_request_but_a_conversation_without_tools_is_not() {
        let title = json!({"output_config": {"format": {"type": "json_schema", "schema": {
            "type": "object", "properties": {"title": {"type": "string"}}}}}});
        assert!(is_side_request(&title, true));
        assert_eq!(side_answer(&title), r#"{"title":"Scripted"}"#);
        let conversation = json!({"tools": [], "thinking": {"type": "adaptive"}, "context_management": {}});
        assert!(!is_side_request(&conversation, true));
    }
}
