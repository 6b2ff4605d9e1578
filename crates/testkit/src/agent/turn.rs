//! One turn, from the user's message to the result: the actions of a behaviour.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use uuid::Uuid;

use super::permission::{Beforehand, Decision};
use super::session::{Progress, Session, UserMessage};
use super::transcript::timestamp;

/// Why a turn ends before its behaviour is finished.
#[derive(Debug)]
pub(crate) enum Stop {
    /// Its result has been sent.
    Failed,
    /// The user stopped it with the answer to a permission prompt.
    Interrupted,
    /// The process ends here, without a result.
    Exit(u8),
}

/// Token counts.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Usage {
    pub(crate) input_tokens: u64,
    pub(crate) output_tokens: u64,
}

impl Usage {
    pub(crate) fn add(&mut self, other: Self) {
        self.input_tokens += other.input_tokens;
        self.output_tokens += other.output_tokens;
    }

    pub(crate) fn as_api(self) -> Value {
        json!({
            "input_tokens": self.input_tokens, "output_tokens": self.output_tokens,
            "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0,
            "server_tool_use": {"web_search_requests": 0, "web_fetch_requests": 0}, "service_tier": "standard",
        })
    }
}

/// A tool call that was announced.
#[derive(Clone, Debug)]
pub(crate) struct ToolCall {
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) input: Value,
}

pub(crate) struct Turn<'a> {
    pub(crate) session: &'a Session,
    pub(crate) prompt: String,
    /// The earlier prompts of this session.
    pub(crate) earlier_prompts: Vec<String>,
    message: Option<Message>,
}

/// A message of the assistant's that is being written.
struct Message {
    id: String,
    next_index: usize,
}

/// A kind of block that is streamed in pieces.
#[derive(Clone, Copy)]
enum Streamed {
    Text,
    Thinking,
}

impl<'a> Turn<'a> {
    pub(crate) async fn begin(session: &'a Session, message: &UserMessage) -> Self {
        let earlier_prompts = {
            let mut state = session.state();
            state.progress = Progress {
                started: Some(Instant::now()),
                ..Progress::default()
            };
            let earlier = state.transcript.prompts().to_vec();
            state
                .transcript
                .append("user", &message.uuid, &message.message, json!({}));
            earlier
        };
        session.init_line().await;
        session.replay(message, Some(timestamp())).await;
        Self {
            session,
            prompt: message.text(),
            earlier_prompts,
            message: None,
        }
    }

    /// Ends the turn successfully.
    pub(crate) async fn finish(mut self) {
        self.end_message("end_turn").await;
        let text = self.session.state().progress.last_text.clone();
        let mut result = self.session.result("success");
        result["result"] = Value::from(text);
        result["terminal_reason"] = Value::from("completed");
        self.session.emit(result).await;
    }

    /// Text, streamed in pieces with a pause after each.
    pub(crate) async fn text(&mut self, text: &str, pieces: &[String], pause: Duration) {
        self.streamed(Streamed::Text, pieces, pause).await;
        text.clone_into(&mut self.session.state().progress.last_text);
    }

    pub(crate) async fn thinking(&mut self, pieces: &[String], pause: Duration) {
        self.streamed(Streamed::Thinking, pieces, pause).await;
    }

    async fn streamed(&mut self, kind: Streamed, pieces: &[String], pause: Duration) {
        let (start, delta_type, field) = match kind {
            Streamed::Text => (json!({"type": "text", "text": ""}), "text_delta", "text"),
            Streamed::Thinking => (
                json!({"type": "thinking", "thinking": "", "signature": ""}),
                "thinking_delta",
                "thinking",
            ),
        };
        let index = self.next_index().await;
        self.event(json!({"type": "content_block_start", "index": index, "content_block": start}))
            .await;
        for piece in pieces {
            self.event(json!({"type": "content_block_delta", "index": index, "delta": {
                "type": delta_type, field: piece,
            }}))
            .await;
            if !pause.is_zero() {
                tokio::time::sleep(pause).await;
            }
        }
        let whole = pieces.concat();
        let block = match kind {
            Streamed::Text => json!({"type": "text", "text": whole}),
            Streamed::Thinking => {
                let signature = "ZGVtbw==";
                self.event(json!({"type": "content_block_delta", "index": index, "delta": {
                    "type": "signature_delta", "signature": signature,
                }}))
                .await;
                json!({"type": "thinking", "thinking": whole, "signature": signature})
            }
        };
        self.end_block(index, block).await;
    }

    /// Announces a tool call.
    pub(crate) async fn tool_use(&mut self, name: &str, input: Value) -> ToolCall {
        let call = ToolCall {
            id: format!("toolu_{}", Uuid::new_v4().simple()),
            name: name.to_owned(),
            input,
        };
        let index = self.next_index().await;
        self.event(
            json!({"type": "content_block_start", "index": index, "content_block": {
                "type": "tool_use", "id": call.id, "name": name, "input": {},
            }}),
        )
        .await;
        self.event(json!({"type": "content_block_delta", "index": index, "delta": {
            "type": "input_json_delta", "partial_json": call.input.to_string(),
        }}))
        .await;
        self.session.state().open_calls.push(call.clone());
        self.end_block(
            index,
            json!({"type": "tool_use", "id": call.id, "name": name, "input": call.input}),
        )
        .await;
        self.end_message("tool_use").await;
        call
    }

    /// Asks whether the call may run, unless mode or rules decide it. A denial is written as the call's result.
    pub(crate) async fn permission(&mut self, call: &ToolCall, suggestions: Value) -> Result<Decision, Stop> {
        let beforehand = {
            let state = self.session.state();
            state
                .rules
                .beforehand(&state.permission_mode, &call.name, &call.input)
        };
        let message = match beforehand {
            Beforehand::Allowed => {
                let input = call.input.clone();
                return Ok(Decision::Allow { input });
            }
            Beforehand::Ask if self.session.options.asks_on_stdio => {
                let answer = self.ask_permission(call, suggestions).await;
                match answer {
                    Some(answer) if answer["behavior"] == "allow" => {
                        self.take_updates(&answer["updatedPermissions"]).await;
                        let input = match &answer["updatedInput"] {
                            Value::Null => call.input.clone(),
                            updated => updated.clone(),
                        };
                        return Ok(Decision::Allow { input });
                    }
                    Some(answer) if answer["interrupt"] == true => return Err(Stop::Interrupted),
                    Some(answer) => answer["message"].as_str().unwrap_or_default().to_owned(),
                    None => "Nobody was there any more to answer the permission prompt.".to_owned(),
                }
            }
            Beforehand::Ask | Beforehand::Denied => {
                format!("{} needs approval, and nobody can be asked.", call.name)
            }
        };
        self.session.state().progress.denials.push(json!({
            "tool_name": call.name, "tool_use_id": call.id, "tool_input": call.input,
        }));
        let structured = Value::from(format!("Error: {message}"));
        self.tool_result(call, &message, true, structured).await;
        Ok(Decision::Deny)
    }

    async fn ask_permission(&self, call: &ToolCall, suggestions: Value) -> Option<Value> {
        let mut request = json!({
            "subtype": "can_use_tool", "tool_name": call.name, "display_name": call.name, "input": call.input,
            "tool_use_id": call.id,
        });
        if let Some(description) = call.input["description"].as_str() {
            request["description"] = Value::from(description);
        }
        if !suggestions.is_null() {
            request["permission_suggestions"] = suggestions;
        }
        self.session.ask(request).await
    }

    /// Applies rules and modes that the user chose with the answer ("don't ask again").
    async fn take_updates(&self, updates: &Value) {
        for update in updates.as_array().map_or(&[][..], Vec::as_slice) {
            match update["type"].as_str() {
                Some("addRules") if update["behavior"] == "allow" => {
                    self.session.state().rules.add(update);
                }
                Some("setMode") => {
                    let mode = update["mode"].as_str().unwrap_or_default();
                    self.session.set_permission_mode(mode).await;
                }
                _ => {}
            }
        }
    }

    pub(crate) async fn tool_result(
        &mut self,
        call: &ToolCall,
        content: &str,
        is_error: bool,
        structured: Value,
    ) {
        self.session
            .tool_result(call, content, is_error, structured)
            .await;
    }

    /// Sends a stream event, if requested.
    pub(crate) async fn event(&self, event: Value) {
        if self.session.options.partial_messages {
            self.session
                .emit(json!({"type": "stream_event", "event": event, "parent_tool_use_id": null}))
                .await;
        }
    }

    /// The index of a new block, in a new message if none is open.
    pub(crate) async fn next_index(&mut self) -> usize {
        if self.message.is_none() {
            let id = format!("msg_{}", Uuid::new_v4().simple());
            self.session.state().progress.messages += 1;
            self.event(json!({"type": "message_start", "message": self.message_object(&id, json!([]))}))
                .await;
            self.message = Some(Message { id, next_index: 0 });
        }
        match &mut self.message {
            Some(message) => {
                message.next_index += 1;
                message.next_index - 1
            }
            None => 0,
        }
    }

    /// The `assistant` line of a block, and its end.
    pub(crate) async fn end_block(&mut self, index: usize, block: Value) {
        if let Some(message) = &self.message {
            let uuid = Uuid::new_v4().to_string();
            let object = self.message_object(&message.id, json!([block]));
            self.session
                .state()
                .transcript
                .append("assistant", &uuid, &object, json!({}));
            self.session
                .emit(json!({
                    "type": "assistant", "message": object, "parent_tool_use_id": null, "uuid": uuid,
                    "timestamp": timestamp(),
                }))
                .await;
        }
        self.event(json!({"type": "content_block_stop", "index": index}))
            .await;
    }

    /// Ends the message that is open, if there is one.
    pub(crate) async fn end_message(&mut self, stop_reason: &str) {
        if self.message.take().is_some() {
            let usage = self.session.state().progress.usage.as_api();
            self.event(json!({
                "type": "message_delta", "delta": {"stop_reason": stop_reason, "stop_sequence": null}, "usage": usage,
            }))
            .await;
            self.event(json!({"type": "message_stop"})).await;
        }
    }

    fn message_object(&self, id: &str, content: Value) -> Value {
        let state = self.session.state();
        json!({
            "id": id, "type": "message", "role": "assistant", "model": state.model, "content": content,
            "stop_reason": null, "stop_sequence": null, "usage": Usage::default().as_api(),
        })
    }
}
