//! The chat completions API, as far as streaming agents need it: requests are converted to those of the Messages API,
//! for which scripts are chosen and played, and its events are converted to chunks.

use serde_json::{Value, json};

/// The request in the form of the Messages API.
pub(crate) fn to_messages(body: &Value) -> Value {
    let messages = body["messages"].as_array().map_or(&[][..], Vec::as_slice);
    let messages: Vec<_> = messages.iter().filter_map(message).collect();
    json!({
        "model": body["model"], "stream": body["stream"], "tools": body["tools"], "messages": messages,
    })
}

fn message(message: &Value) -> Option<Value> {
    let content = &message["content"];
    match message["role"].as_str()? {
        "user" => Some(json!({ "role": "user", "content": content })),
        "tool" => Some(json!({ "role": "user", "content": [
            { "type": "tool_result", "tool_use_id": message["tool_call_id"], "content": content },
        ] })),
        "assistant" => {
            let text = content.as_str().filter(|text| !text.is_empty());
            let text = text.map(|text| json!({ "type": "text", "text": text }));
            let calls = message["tool_calls"].as_array().map_or(&[][..], Vec::as_slice);
            let calls = calls.iter().map(|call| {
                let function = &call["function"];
                let input = function["arguments"].as_str().unwrap_or_default();
                let input: Value = serde_json::from_str(input).unwrap_or_default();
                json!({ "type": "tool_use", "id": call["id"], "name": function["name"], "input": input })
            });
            let blocks: Vec<_> = text.into_iter().chain(calls).collect();
            Some(json!({ "role": "assistant", "content": blocks }))
        }
        // Instructions, which no script reads.
        _ => None,
    }
}

/// Turns the events of one message into the lines of a stream.
#[derive(Debug, Default)]
pub(crate) struct Chunks {
    id: Value,
    model: Value,
    /// How many tools have been called.
    calls: usize,
}

impl Chunks {
    /// The text of an event; empty if chunks have nothing for it.
    pub(crate) fn of(&mut self, event: &Value) -> String {
        match event["type"].as_str().unwrap_or_default() {
            "message_start" => {
                self.id = event["message"]["id"].clone();
                self.model = event["message"]["model"].clone();
                self.chunk(&json!({ "role": "assistant", "content": "" }), &Value::Null)
            }
            "content_block_start" if event["content_block"]["type"] == "tool_use" => {
                let block = &event["content_block"];
                self.calls += 1;
                let function = json!({ "name": block["name"], "arguments": "" });
                self.call(&json!({ "id": block["id"], "type": "function", "function": function }))
            }
            "content_block_delta" => {
                let delta = &event["delta"];
                if delta["partial_json"].is_string() {
                    self.call(&json!({ "function": { "arguments": delta["partial_json"] } }))
                } else if delta["text"].is_string() {
                    self.chunk(&json!({ "content": delta["text"] }), &Value::Null)
                } else if delta["thinking"].is_string() {
                    self.chunk(&json!({ "reasoning_content": delta["thinking"] }), &Value::Null)
                } else {
                    String::new()
                }
            }
            "message_delta" => {
                let reason = match event["delta"]["stop_reason"].as_str() {
                    Some("tool_use") => "tool_calls",
                    Some("max_tokens") => "length",
                    _ => "stop",
                };
                let input = event["usage"]["input_tokens"].as_u64().unwrap_or_default();
                let output = event["usage"]["output_tokens"].as_u64().unwrap_or_default();
                let usage = json!({
                    "prompt_tokens": input, "completion_tokens": output, "total_tokens": input + output,
                });
                let usage = json!({
                    "id": self.id, "object": "chat.completion.chunk", "created": 0, "model": self.model,
                    "choices": [], "usage": usage,
                });
                self.chunk(&json!({}), &reason.into()) + &line(&usage)
            }
            "message_stop" => "data: [DONE]\n\n".to_owned(),
            "error" => line(&json!({ "error": event["error"] })),
            _ => String::new(),
        }
    }

    fn call(&self, call: &Value) -> String {
        let mut call = call.clone();
        call["index"] = self.calls.saturating_sub(1).into();
        self.chunk(&json!({ "tool_calls": [call] }), &Value::Null)
    }

    fn chunk(&self, delta: &Value, finish_reason: &Value) -> String {
        let choice = json!({ "index": 0, "delta": delta, "finish_reason": finish_reason });
        line(&json!({
            "id": self.id, "object": "chat.completion.chunk", "created": 0, "model": self.model, "choices": [choice],
        }))
    }
}

fn line(chunk: &Value) -> String {
    format!("data: {chunk}\n\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_of_tools_follow_the_message_that_called_them() {
        let call = json!({ "id": "t", "type": "function", "function": { "name": "bash", "arguments": "{\"a\":1}" } });
        let body = json!({ "model": "m", "messages": [
            { "role": "system", "content": "be nice" },
            { "role": "user", "content": "go" },
            { "role": "assistant", "content": "", "tool_calls": [call] },
            { "role": "tool", "tool_call_id": "t", "content": "done" },
        ] });
        assert_eq!(
            to_messages(&body)["messages"],
            json!([
                { "role": "user", "content": "go" },
                { "role": "assistant", "content": [{ "type": "tool_use", "id": "t", "name": "bash", "input": { "a": 1 } }] },
                { "role": "user", "content": [{ "type": "tool_result", "tool_use_id": "t", "content": "done" }] },
            ])
        );
    }

    #[test]
    fn the_arguments_of_a_call_belong_to_its_index() {
        let mut chunks = Chunks::default();
        for index in 0..2 {
            let block = json!({ "type": "tool_use", "id": "t", "name": "bash" });
            let begun = chunks.of(&json!({ "type": "content_block_start", "content_block": block }));
            let more =
                chunks.of(&json!({ "type": "content_block_delta", "delta": { "partial_json": "{}" } }));
            for text in [begun, more] {
                let chunk: Value = serde_json::from_str(text.trim().strip_prefix("data: ").unwrap()).unwrap();
                assert_eq!(chunk["choices"][0]["delta"]["tool_calls"][0]["index"], index);
            }
        }
    }
}
