//! The state of a process beyond one turn: identity, settings, open questions, and the answers to control requests.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde_json::{Value, json};
use tokio::sync::{oneshot, watch};
use uuid::Uuid;

use super::PROTOCOL_VERSION;
use super::options::{Options, Start};
use super::output::Output;
use super::permission::Rules;
use super::transcript::{Transcript, prompt_text, timestamp};
use super::turn::{ToolCall, Usage};

/// The model's name if none was chosen. There is no model, and the name says so.
const DEMO_MODEL: &str = "demo-no-model";

pub(crate) struct Session {
    pub(crate) options: Options,
    pub(crate) output: Output,
    state: Mutex<State>,
    /// Set when a script stops reading stdin.
    deaf: watch::Sender<bool>,
}

/// Never locked across an await.
pub(crate) struct State {
    pub(crate) transcript: Transcript,
    pub(crate) model: String,
    pub(crate) permission_mode: String,
    pub(crate) rules: Rules,
    /// Questions to the other side, by request id.
    pending: HashMap<String, oneshot::Sender<Value>>,
    /// Tool calls of the running turn that have no result yet.
    pub(crate) open_calls: Vec<ToolCall>,
    /// The running turn's figures, which an interrupt also needs.
    pub(crate) progress: Progress,
    /// The figures of the whole process.
    pub(crate) total: Usage,
    pub(crate) total_cost_usd: f64,
    /// Stdin has ended, so no question can be answered any more.
    unanswerable: bool,
}

/// The progress of a running turn, for its result.
#[derive(Debug, Default)]
pub(crate) struct Progress {
    pub(crate) started: Option<std::time::Instant>,
    pub(crate) messages: u64,
    pub(crate) usage: Usage,
    pub(crate) denials: Vec<Value>,
    pub(crate) last_text: String,
}

/// A message of the user's.
#[derive(Clone, Debug)]
pub(crate) struct UserMessage {
    pub(crate) uuid: String,
    pub(crate) message: Value,
}

impl UserMessage {
    pub(crate) fn new(line: Value) -> Self {
        let uuid = line["uuid"]
            .as_str()
            .map_or_else(|| Uuid::new_v4().to_string(), str::to_owned);
        Self {
            uuid,
            message: line["message"].clone(),
        }
    }

    pub(crate) fn text(&self) -> String {
        prompt_text(&self.message["content"])
    }
}

impl Session {
    pub(crate) fn new(options: Options, transcript: Transcript, output: Output) -> Self {
        let state = State {
            transcript,
            model: options.model.clone().unwrap_or_else(|| DEMO_MODEL.to_owned()),
            permission_mode: options.permission_mode.clone(),
            rules: Rules::new(options.allowed_tools.clone()),
            pending: HashMap::new(),
            open_calls: Vec::new(),
            progress: Progress::default(),
            total: Usage::default(),
            total_cost_usd: 0.0,
            unanswerable: false,
        };
        Self {
            options,
            output,
            state: Mutex::new(state),
            deaf: watch::Sender::new(false),
        }
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn id(&self) -> String {
        self.state().transcript.session_id().to_owned()
    }

    pub(crate) fn is_deaf(&self) -> bool {
        *self.deaf.borrow()
    }

    pub(crate) fn go_deaf(&self) {
        self.deaf.send_replace(true);
    }

    /// Returns when stdin must no longer be read.
    pub(crate) async fn deafened(&self) {
        // The sender lives as long as the session, so the wait ends only when the value is set.
        if self.deaf.subscribe().wait_for(|deaf| *deaf).await.is_err() {
            std::future::pending::<()>().await;
        }
    }

    pub(crate) fn knows(&self, message: &UserMessage) -> bool {
        self.state().transcript.has_user_message(&message.uuid)
    }

    /// Sends a line with the fields that all lines of a session have.
    pub(crate) async fn emit(&self, mut line: Value) {
        line["session_id"] = Value::from(self.id());
        if line["uuid"].is_null() {
            line["uuid"] = Value::from(Uuid::new_v4().to_string());
        }
        self.output.line(line).await;
    }

    /// Acknowledges a user message, if requested.
    pub(crate) async fn replay(&self, message: &UserMessage, timestamp: Option<String>) {
        if !self.options.replay_user_messages {
            return;
        }
        let mut line = json!({
            "type": "user", "message": message.message, "parent_tool_use_id": null,
            "uuid": message.uuid, "isReplay": true,
        });
        if let Some(timestamp) = timestamp {
            line["timestamp"] = Value::from(timestamp);
        }
        self.emit(line).await;
    }

    pub(crate) async fn init_line(&self) {
        let line = {
            let state = self.state();
            json!({
                "type": "system", "subtype": "init", "cwd": state.transcript.cwd(),
                "tools": ["AskUserQuestion", "Bash", "Edit", "ExitPlanMode", "TodoWrite", "Write"], "mcp_servers": [],
                "model": state.model, "permissionMode": state.permission_mode, "slash_commands": [],
                "apiKeySource": "none", "output_style": "default",
                "agents": [], "skills": [], "plugins": [],
            })
        };
        self.emit(line).await;
    }

    /// Asks the other side and waits for the answer. `None` when stdin ended without one.
    pub(crate) async fn ask(&self, request: Value) -> Option<Value> {
        let id = Uuid::new_v4().to_string();
        let (answer, answered) = oneshot::channel();
        {
            let mut state = self.state();
            if state.unanswerable {
                return None;
            }
            state.pending.insert(id.clone(), answer);
        }
        self.output
            .line(json!({"type": "control_request", "request_id": id, "request": request}))
            .await;
        answered.await.ok()
    }

    /// Processes the answer to one of our questions.
    pub(crate) async fn resolve(&self, message: Value) {
        let response = &message["response"];
        let id = response["request_id"].as_str().unwrap_or_default();
        let waiting = self.state().pending.remove(id);
        if let Some(waiting) = waiting {
            let answer = match response["subtype"].as_str() {
                Some("success") => response["response"].clone(),
                _ => json!({"behavior": "deny", "message": response["error"]}),
            };
            if waiting.send(answer).is_err() {
                // The turn that asked was interrupted in the meantime.
            }
            if self.options.replay_user_messages {
                self.output.line(message).await;
            }
        }
    }

    /// Stdin has ended: open questions will never be answered.
    pub(crate) fn withdraw_unanswerable(&self) {
        let mut state = self.state();
        state.unanswerable = true;
        state.pending.clear();
    }

    /// Withdraws our open questions because the turn was interrupted.
    pub(crate) async fn cancel_pending(&self) {
        let ids: Vec<String> = self.state().pending.drain().map(|(id, _)| id).collect();
        for id in ids {
            self.output
                .line(json!({"type": "control_cancel_request", "request_id": id}))
                .await;
        }
    }

    pub(crate) async fn succeed(&self, id: &Value, response: Value) {
        self.output
            .line(json!({"type": "control_response", "response": {
                "subtype": "success", "request_id": id, "response": response,
            }}))
            .await;
    }

    async fn refuse(&self, id: &Value, error: String) {
        self.output
            .line(json!({"type": "control_response", "response": {
                "subtype": "error", "request_id": id, "error": error,
            }}))
            .await;
    }

    /// Answers every control request but an interrupt, which concerns the running turn.
    pub(crate) async fn answer_control(&self, id: &Value, subtype: &str, request: &Value) {
        match subtype {
            "initialize" => self.succeed(id, self.initialized()).await,
            "set_model" => {
                let model = match request["model"].as_str() {
                    Some("default") | None => DEMO_MODEL,
                    Some(model) => model,
                }
                .to_owned();
                self.state().model.clone_from(&model);
                self.succeed(id, json!({"model": model})).await;
            }
            "set_permission_mode" => {
                let mode = request["mode"].as_str().unwrap_or_default();
                if mode == "bypassPermissions" && !self.options.may_bypass {
                    let why = "Cannot set permission mode to bypassPermissions because the session was not launched \
                               with --allow-dangerously-skip-permissions";
                    self.refuse(id, why.to_owned()).await;
                } else {
                    self.succeed(id, json!({"mode": mode})).await;
                    self.set_permission_mode(mode).await;
                }
            }
            "set_max_thinking_tokens" => self.succeed(id, json!({})).await,
            "mcp_status" => self.succeed(id, json!({"mcpServers": []})).await,
            "get_binary_version" => self.succeed(id, json!({"version": PROTOCOL_VERSION})).await,
            other => {
                self.refuse(id, format!("Unsupported control request subtype: {other}"))
                    .await;
            }
        }
    }

    pub(crate) async fn set_permission_mode(&self, mode: &str) {
        mode.clone_into(&mut self.state().permission_mode);
        self.emit(json!({"type": "system", "subtype": "status", "status": null, "permissionMode": mode}))
            .await;
    }

    fn initialized(&self) -> Value {
        let state = self.state();
        json!({
            "commands": [],
            "agents": [],
            "output_style": "default",
            "available_output_styles": ["default"],
            "models": [{
                "value": "default", "resolvedModel": DEMO_MODEL, "displayName": "Demo",
                "description": "A scripted tour. No model is behind it.",
            }],
            "account": {"tokenSource": "none", "apiKeySource": "none"},
            "pid": std::process::id(),
            "current_permission_mode": state.permission_mode,
        })
    }

    /// Ends an interrupted turn: a result for every open tool call, a note, and the turn's own result.
    pub(crate) async fn end_interrupted_turn(&self) {
        let open_calls = std::mem::take(&mut self.state().open_calls);
        let in_tools = !open_calls.is_empty();
        for call in open_calls {
            let content = "The user stopped the turn before this tool was run.";
            self.tool_result(&call, content, true, Value::from("User rejected tool use"))
                .await;
        }
        let note = if in_tools {
            "[Request interrupted by user for tool use]"
        } else {
            "[Request interrupted by user]"
        };
        let message = json!({"role": "user", "content": [{"type": "text", "text": note}]});
        self.user_line(message, Value::Null).await;
        let mut result = self.result("error_during_execution");
        result["is_error"] = Value::from(true);
        result["errors"] = json!(["The turn was interrupted."]);
        result["terminal_reason"] = Value::from(if in_tools {
            "aborted_tools"
        } else {
            "aborted_streaming"
        });
        self.emit(result).await;
    }

    pub(crate) async fn tool_result(
        &self,
        call: &ToolCall,
        content: &str,
        is_error: bool,
        structured: Value,
    ) {
        self.state().open_calls.retain(|open| open.id != call.id);
        let message = json!({"role": "user", "content": [{
            "type": "tool_result", "tool_use_id": call.id, "content": content, "is_error": is_error,
        }]});
        self.user_line(message, structured).await;
    }

    /// A `user` line that the agent itself writes.
    async fn user_line(&self, message: Value, tool_use_result: Value) {
        let uuid = Uuid::new_v4().to_string();
        let mut line = json!({
            "type": "user", "message": message, "parent_tool_use_id": null, "uuid": uuid, "timestamp": timestamp(),
        });
        let mut extra = json!({});
        if !tool_use_result.is_null() {
            line["tool_use_result"] = tool_use_result.clone();
            extra["toolUseResult"] = tool_use_result;
        }
        self.state().transcript.append("user", &uuid, &message, extra);
        self.emit(line).await;
    }

    /// The result of the running turn, which ends with it.
    pub(crate) fn result(&self, subtype: &str) -> Value {
        let mut state = self.state();
        let progress = std::mem::take(&mut state.progress);
        state.total.add(progress.usage);
        let duration = progress
            .started
            .map_or(0, |started| started.elapsed().as_millis());
        let total = state.total;
        let total_cost_usd = state.total_cost_usd;
        json!({
            "type": "result", "subtype": subtype, "is_error": false,
            "duration_ms": u64::try_from(duration).unwrap_or(u64::MAX), "duration_api_ms": 0,
            "num_turns": progress.messages, "stop_reason": "end_turn",
            "total_cost_usd": total_cost_usd, "usage": progress.usage.as_api(),
            "modelUsage": {state.model.as_str(): {
                "inputTokens": total.input_tokens, "outputTokens": total.output_tokens,
                "cacheReadInputTokens": 0, "cacheCreationInputTokens": 0, "webSearchRequests": 0,
                "costUSD": total_cost_usd, "contextWindow": 200_000, "maxOutputTokens": 0,
            }},
            "permission_denials": progress.denials,
        })
    }
}

/// The only line of a process that could not begin its session.
pub(crate) fn failed_start(options: &Options, errors: Value) -> Value {
    let id = match &options.start {
        Start::Resume(id) => id.clone(),
        Start::New | Start::Newest => Uuid::new_v4().to_string(),
    };
    json!({
        "type": "result", "subtype": "error_during_execution", "duration_ms": 0, "duration_api_ms": 0,
        "is_error": true, "num_turns": 0, "stop_reason": null, "session_id": id, "total_cost_usd": 0,
        "usage": Usage::default().as_api(), "modelUsage": {}, "permission_denials": [],
        "uuid": Uuid::new_v4().to_string(), "errors": errors,
    })
}
