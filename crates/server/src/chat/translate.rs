//! Between the chat API's messages and the core's. Pure: the same events lead to the same frames, so that a client that
//! comes back is told what it would have been told.

mod calls;
#[cfg(test)]
mod tests;

use std::collections::HashSet;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tiller_core::backend::HookCall;
use tiller_core::{
    Answer, Behavior, CommandError, DecisionRequest, Event, EventBody, NewImage, NewPrompt, PromptRefused,
    RawJson, SessionRecord, SessionStatus, Settings, StatusChange,
};

use self::calls::Calls;
use crate::options::{self, PermissionMode};

use super::wire::{
    ClientMessage, Code, Decision, Frame, PermissionResponse, Said, ServerMessage, UserContent,
};

/// What an agent offers that has not said so yet.
const USUAL_TOOLS: &[&str] = &["Bash", "Read", "Edit", "Write", "Grep", "Glob"];

/// The model's name where the agent chooses.
const DEFAULT_MODEL: &str = "default";

/// What is wrong with a message, for the one who sent it.
#[derive(Debug, PartialEq)]
pub(super) struct Refused(pub(super) Code, pub(super) String);

impl From<CommandError> for Refused {
    fn from(error: CommandError) -> Self {
        use tiller_core::session::Refusal;
        let code = match &error {
            CommandError::Prompt(PromptRefused::Empty) => Code::EmptyMessage,
            CommandError::UnknownSession | CommandError::Name => Code::InvalidSession,
            CommandError::Option(refused) if refused.option == options::MODEL => Code::InvalidModel,
            CommandError::Path(_) => Code::InvalidCwd,
            CommandError::Forbidden => Code::Forbidden,
            CommandError::Refused(Refusal::RequestNotFound) => Code::RequestNotFound,
            CommandError::Refused(Refusal::AlreadyAnswered) => Code::AlreadyAnswered,
            CommandError::Refused(Refusal::NoResumeId) => Code::NoResumeId,
            CommandError::Prompt(PromptRefused::Nul)
            | CommandError::Option(_)
            | CommandError::Backend(_)
            | CommandError::Unsupported { .. }
            | CommandError::Title
            | CommandError::Busy
            | CommandError::DrivenElsewhere(_)
            | CommandError::Takeover(_)
            | CommandError::Inquiry(_)
            | CommandError::Refused(
                Refusal::QueueChanged | Refusal::Deleted | Refusal::EmptyPrompt | Refusal::PromptIdUsed,
            ) => Code::ParseError,
            CommandError::Prompt(_) => Code::InvalidImage,
            CommandError::Store(_) | CommandError::Stopping => Code::Internal,
        };
        Self(code, error.to_string())
    }
}

/// Reads one frame of a connection that calls its session `name`.
pub(super) fn parse(frame: &str, name: &str) -> Result<ClientMessage, Refused> {
    #[derive(Deserialize)]
    struct Envelope<'a> {
        r#type: Option<Value>,
        session_id: Option<Value>,
        #[serde(borrow)]
        message: Option<&'a RawValue>,
    }
    let wrong = |reason: String| Refused(Code::ParseError, reason);
    // The library would take a list for an object whose fields have no names.
    let is_object = |json: &str| json.trim_start().starts_with('{');
    if !is_object(frame) {
        return Err(wrong("The message is not a JSON object.".to_owned()));
    }
    let envelope: Envelope = serde_json::from_str(frame)
        .map_err(|error| wrong(format!("The message is not a JSON object: {error}")))?;
    let Some(Value::String(kind)) = envelope.r#type else {
        return Err(wrong("Expected 'type' field in message".to_owned()));
    };
    let content = envelope.message.filter(|_| kind == "user_message");
    if content.is_some_and(|content| !is_object(content.get())) {
        let reason = "The message 'user_message' is not understood: 'message' is an object with 'content'.";
        return Err(wrong(reason.to_owned()));
    }
    match envelope.session_id {
        None | Some(Value::Null) => {}
        Some(Value::String(named)) if named == name => {}
        Some(_) => {
            let reason =
                format!("This connection is for the session '{name}'. Open another one for another.");
            return Err(Refused(Code::InvalidSession, reason));
        }
    }
    serde_json::from_str(frame).map_err(|error| {
        let reason = error.to_string();
        // The library's own words would list every type there is.
        wrong(
            if reason.starts_with("unknown variant") && reason.contains(&format!("`{kind}`")) {
                format!("Unknown message type '{kind}'")
            } else {
                format!("The message '{kind}' is not understood: {reason}")
            },
        )
    })
}

pub(super) fn answer(response: PermissionResponse) -> Result<Answer, Refused> {
    let raw = |error: serde_json::Error| Refused(Code::ParseError, error.to_string());
    Ok(match response.decision {
        Decision::Allow => Answer::Allow {
            input: response
                .updated_input
                .map(|input| RawJson::of(&input))
                .transpose()
                .map_err(raw)?,
            permissions: response
                .updated_permissions
                .map(|rules| RawJson::of(&rules))
                .transpose()
                .map_err(raw)?,
        },
        Decision::Deny => Answer::Deny {
            message: response.message,
            interrupt: response.interrupt.unwrap_or(false),
        },
    })
}

/// Names of models that every release of the agent knows. Those that it lists have one of these, or a full name.
const MODEL_ALIASES: &[&str] = &["sonnet", "opus", "haiku", "fable", "best", "opusplan"];

/// The model to set; `None` leaves the choice to the agent. `offered` is what the agent lists, once it has.
pub(super) fn model(name: &str, offered: Option<&[String]>) -> Result<Option<String>, Refused> {
    if name == DEFAULT_MODEL {
        return Ok(None);
    }
    // `sonnet[1m]` is `sonnet` with a larger context.
    let family = name.split('[').next().unwrap_or_default();
    let is_full = family
        .strip_prefix("claude-")
        .is_some_and(|rest| !rest.is_empty());
    let is_known = match offered {
        Some(offered) => offered.iter().any(|model| model == name),
        None => MODEL_ALIASES.contains(&family),
    };
    if is_full || is_known {
        return Ok(Some(name.to_owned()));
    }
    let reason = format!("'{name}' is no model that the agent knows.");
    Err(Refused(Code::InvalidModel, reason))
}

/// What a user says, with what is to be sent beside it.
pub(super) fn prompt(said: UserContent) -> Result<NewPrompt, Refused> {
    let images = said.images.into_iter().map(|image| {
        let bytes = BASE64
            .decode(image.data.as_bytes())
            .map_err(|_| Refused(Code::InvalidImage, "An image is not base64.".to_owned()))?;
        Ok(NewImage {
            media_type: image.media_type,
            name: image.name,
            bytes,
        })
    });
    Ok(NewPrompt {
        id: None,
        text: said.content,
        parent_tool_use_id: said.parent_tool_use_id,
        images: images.collect::<Result<_, Refused>>()?,
        context: said.context,
    })
}

/// Names of hook events, as the agent has them. New releases add some, so only the form is checked.
pub(super) fn hook_events(events: Vec<String>) -> Result<Vec<String>, Refused> {
    let is_name = |event: &String| {
        (1..=MAX_EVENT_NAME).contains(&event.len())
            && event.chars().all(|letter| letter.is_ascii_alphabetic())
    };
    if events.len() > MAX_EVENTS || !events.iter().all(is_name) {
        let reason = "'events' is a list of hook events such as PreToolUse.".to_owned();
        return Err(Refused(Code::ParseError, reason));
    }
    Ok(events)
}

const MAX_EVENTS: usize = 64;
const MAX_EVENT_NAME: usize = 64;

pub(super) fn hook_callback(name: &str, call: &HookCall) -> ServerMessage {
    let mut input: Value = serde_json::from_str(call.input.as_str()).unwrap_or_default();
    if let Some(session) = input.get_mut("session_id") {
        *session = name.into();
    }
    ServerMessage::HookCallback {
        callback_id: call.agent_request.clone(),
        hook_event: call.event.clone(),
        input,
        tool_use_id: call.tool_use_id.clone(),
    }
}

/// Puts words to the commands that the agent has only named, from its own list.
pub(super) fn describe_commands(message: &mut ServerMessage, list: &RawJson) {
    #[derive(Deserialize)]
    struct Listed {
        name: String,
        #[serde(default)]
        description: String,
        #[serde(default, rename = "argumentHint")]
        arguments: Value,
    }
    let ServerMessage::System { subtype, data } = message else {
        return;
    };
    if subtype != COMMANDS {
        return;
    }
    let listed: Vec<Listed> = serde_json::from_str(list.as_str()).unwrap_or_default();
    let arguments = |value: &Value| match value {
        Value::String(text) => text.clone(),
        Value::Array(parts) => {
            let parts: Vec<_> = parts.iter().filter_map(Value::as_str).collect();
            parts.join(" ")
        }
        _ => String::new(),
    };
    for command in data["commands"].as_array_mut().into_iter().flatten() {
        let found = listed
            .iter()
            .find(|listed| command["name"] == slashed(&listed.name));
        if let Some(found) = found {
            command["description"] = found.description.clone().into();
            command["args"] = arguments(&found.arguments).into();
        }
    }
}

const COMMANDS: &str = "available_commands";

pub(super) fn unknown_mode(mode: &str) -> Refused {
    let modes: Vec<_> = PermissionMode::ALL.iter().map(|mode| mode.as_str()).collect();
    let reason = format!("'{mode}' is no permission mode: use {}.", modes.join(", "));
    Refused(Code::InvalidPermissionMode, reason)
}

/// What the agent said of itself when the session began.
#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(default)]
pub(super) struct Introduction {
    model: Option<String>,
    tools: Option<Vec<String>>,
}

impl Introduction {
    /// The introduction among a session's events.
    pub(super) fn find(events: &[Event]) -> Option<Self> {
        events.iter().find_map(|event| match &event.body {
            EventBody::Message { raw, .. } if raw.as_str().contains(r#""init""#) => {
                let message: Value = serde_json::from_str(raw.as_str()).ok()?;
                let is_init = message["type"] == "system" && message["subtype"] == "init";
                is_init.then(|| serde_json::from_value(message).ok())?
            }
            _ => None,
        })
    }
}

/// The first frame.
pub(super) fn session_start(
    name: &str,
    settings: &Settings,
    record: Option<&SessionRecord>,
    introduction: &Introduction,
    cwd: &str,
) -> ServerMessage {
    let tools = options::tools(&settings.options).or_else(|| introduction.tools.clone());
    let tools = tools.unwrap_or_else(|| USUAL_TOOLS.iter().map(ToString::to_string).collect());
    let model = settings
        .options
        .text(options::MODEL)
        .or(introduction.model.as_deref());
    ServerMessage::system(
        "session_start",
        json!({
            "session_id": name,
            "model": model.unwrap_or(DEFAULT_MODEL),
            "permission_mode": PermissionMode::of(&settings.options).as_str(),
            "available_tools": tools,
            "last_seq": record.map_or(0, |record| record.last_seq),
            "cwd": cwd,
        }),
    )
}

pub(super) fn status(settings: &Settings) -> ServerMessage {
    let model = settings.options.text(options::MODEL).unwrap_or(DEFAULT_MODEL);
    let mode = PermissionMode::of(&settings.options).as_str();
    ServerMessage::system("status", json!({ "model": model, "permission_mode": mode }))
}

pub(super) fn queue(prompts: &[String]) -> ServerMessage {
    let message = match prompts.len() {
        0 => "No message is waiting.".to_owned(),
        1 => "1 message waits for the running turn to end.".to_owned(),
        count => format!("{count} messages wait for the running turn to end."),
    };
    ServerMessage::system("queued", json!({ "message": message, "prompts": prompts }))
}

/// What the client has seen is not what this session has said: it is to ask again, from the beginning.
pub(super) fn reset(last_seq: u64) -> ServerMessage {
    ServerMessage::system("reset", json!({ "last_seq": last_seq }))
}

pub(super) fn interrupted() -> ServerMessage {
    let message = "Operation interrupted by user";
    ServerMessage::system("interrupted", json!({ "message": message }))
}

/// Reads a session's events in order, from the prompt of some turn on.
pub(super) struct Translator {
    name: String,
    /// Everything up to here the client has been told by an earlier connection.
    seen: u64,
    model: String,
    /// The whole blocks of the message that the agent is saying.
    open: Option<Open>,
    turn: Option<Turn>,
    commands_told: bool,
    calls: Calls,
}

/// The agent hands out a message block by block; the contract has it whole. And where the agent asks before it uses a
/// tool, the contract has the question first and then the call.
struct Open {
    id: String,
    content: Vec<Value>,
    error: Option<Value>,
    /// The event with which it was complete, and its frame, which waits with it.
    complete: Option<(u64, Frame)>,
    /// Its calls that wait for a decision.
    undecided: HashSet<String>,
}

#[derive(Default)]
struct Turn {
    introduced: bool,
    result: Option<Value>,
}

impl Open {
    fn calls(&self, tool_use_id: &str) -> bool {
        let mut blocks = self.content.iter();
        blocks.any(|block| block["type"] == "tool_use" && block["id"] == tool_use_id)
    }

    fn calls_any(&self) -> bool {
        self.content.iter().any(|block| block["type"] == "tool_use")
    }
}

/// The frames of one event.
struct Out {
    seq: u64,
    frames: Vec<Frame>,
}

impl Out {
    fn push(&mut self, message: ServerMessage) {
        self.frames.push(Frame {
            message,
            seq: Some(self.seq),
        });
    }
}

impl Translator {
    pub(super) fn new(name: &str, seen: u64, introduction: &Introduction) -> Self {
        Self {
            name: name.to_owned(),
            seen,
            model: introduction.model.clone().unwrap_or_default(),
            open: None,
            turn: None,
            commands_told: false,
            calls: Calls::default(),
        }
    }

    /// A call is held back for a moment: the agent may be about to ask for it. When nothing more comes, call
    /// [`Self::release`].
    pub(super) fn holds(&self) -> bool {
        let held = |open: &Open| open.complete.is_some() && open.undecided.is_empty();
        self.open.as_ref().is_some_and(held)
    }

    pub(super) fn release(&mut self) -> Vec<Frame> {
        let seq = self
            .open
            .as_ref()
            .and_then(|open| Some(open.complete.as_ref()?.0));
        let mut out = Out {
            seq: seq.unwrap_or(0),
            frames: Vec::new(),
        };
        self.flush(&mut out);
        out.frames
    }

    pub(super) fn push(&mut self, event: &Event) -> Vec<Frame> {
        let mut out = Out {
            seq: event.seq,
            frames: Vec::new(),
        };
        match &event.body {
            EventBody::UserPrompt { prompt } => {
                self.flush(&mut out);
                self.turn = Some(Turn::default());
                self.calls = Calls::default();
                out.push(ServerMessage::UserMessage {
                    session_id: self.name.clone(),
                    message: Said {
                        content: prompt.text.clone(),
                        parent_tool_use_id: prompt.parent_tool_use_id.clone(),
                    },
                    uuid: prompt.id.to_string(),
                });
            }
            // What is no JSON that we know is for other readers.
            EventBody::Message { raw, .. } => {
                // Here a stop has its own words, and the result of the turn is told after them.
                let raw = tiller_message::stopped_result(raw.as_str()).unwrap_or(raw.as_str());
                if let Ok(message) = serde_json::from_str::<Value>(raw) {
                    self.message(message, &mut out);
                }
            }
            EventBody::DecisionRequested(asked) => self.asks(asked, &mut out),
            EventBody::DecisionResolved {
                request,
                tool_use_id,
                behavior,
                ..
            } => {
                if *behavior == Behavior::Deny {
                    self.calls.denied(tool_use_id);
                }
                let behavior = behavior.as_str();
                let data = json!({ "request_id": request.to_string(), "tool_use_id": tool_use_id, "behavior": behavior });
                out.push(ServerMessage::system("permission_resolved", data));
                let decided = self
                    .open
                    .as_mut()
                    .is_some_and(|open| open.undecided.remove(tool_use_id) && open.undecided.is_empty());
                if decided {
                    self.flush(&mut out);
                }
            }
            EventBody::Status(change) if change.status != SessionStatus::Running => {
                self.flush(&mut out);
                if change.status != SessionStatus::Idle {
                    self.tell_failures(&mut out);
                }
                self.end(change, &mut out);
            }
            EventBody::Status(_) => {}
        }
        out.frames
    }

    fn tell_failures(&mut self, out: &mut Out) {
        for failure in self.calls.failures() {
            out.push(failure);
        }
    }

    fn message(&mut self, mut message: Value, out: &mut Out) {
        let is_subagents = !message["parent_tool_use_id"].is_null();
        if matches!(message["type"].as_str(), Some("stream_event" | "assistant")) {
            self.tell_failures(out);
        }
        for block in message["message"]["content"].as_array().into_iter().flatten() {
            if block["type"] == "tool_use" {
                self.calls.called(block);
            }
        }
        match message["type"].as_str() {
            Some("stream_event") => self.piece(message, out),
            Some("assistant") if is_subagents => {
                let parent = message["parent_tool_use_id"].take();
                let model = message["message"]["model"]
                    .as_str()
                    .unwrap_or(&self.model)
                    .to_owned();
                out.push(ServerMessage::Assistant {
                    content: blocks(message["message"]["content"].take()),
                    model,
                    parent_tool_use_id: parent,
                    error: None,
                });
            }
            Some("assistant") => self.said(message, out),
            Some("user") => self.returned(message, is_subagents, out),
            Some("result") => self.result(message, out),
            Some("system") if message["subtype"] == "init" => self.introduced(message, out),
            Some("system") => {
                // `status` is our word for the session's settings; the agent's own is about what it is busy with.
                let subtype = match message["subtype"].as_str() {
                    Some("status") => "agent_status",
                    Some(other) => other,
                    None => "notification",
                };
                out.push(ServerMessage::System {
                    subtype: subtype.to_owned(),
                    data: about(message),
                });
            }
            Some(other) => {
                let subtype = other.to_owned();
                out.push(ServerMessage::System {
                    subtype,
                    data: about(message),
                });
            }
            None => {}
        }
    }

    fn piece(&mut self, mut message: Value, out: &mut Out) {
        let (event, parent) = (message["event"].take(), message["parent_tool_use_id"].take());
        let ends = event["type"] == "message_stop" && parent.is_null();
        out.push(ServerMessage::Stream {
            uuid: message["uuid"].take(),
            session_id: self.name.clone(),
            event,
            parent_tool_use_id: parent,
        });
        let Some(open) = self.open.as_mut().filter(|_| ends) else {
            return;
        };
        if !open.calls_any() {
            self.flush(out);
        } else if open.undecided.is_empty() {
            // Both wait: a client that has the end of a message has all of it.
            open.complete = out.frames.pop().map(|frame| (out.seq, frame));
        }
    }

    fn said(&mut self, mut message: Value, out: &mut Out) {
        let id = message["message"]["id"].as_str().unwrap_or_default().to_owned();
        let same = |open: &Open| open.id == id && open.complete.is_none();
        if !self.open.as_ref().is_some_and(same) {
            self.flush(out);
        }
        if let Some(model) = message["message"]["model"].as_str() {
            model.clone_into(&mut self.model);
        }
        let open = self.open.get_or_insert_with(|| Open {
            id,
            content: Vec::new(),
            error: None,
            complete: None,
            undecided: HashSet::new(),
        });
        open.content.extend(blocks(message["message"]["content"].take()));
        open.error = Some(message["error"].take())
            .filter(|error| !error.is_null())
            .or(open.error.take());
    }

    /// Tells what is held back.
    fn flush(&mut self, out: &mut Out) {
        let Some(open) = self.open.take() else { return };
        let waited = open.complete.map(|(_, frame)| frame);
        let seq = waited.as_ref().and_then(|frame| frame.seq).unwrap_or(out.seq);
        let message = ServerMessage::Assistant {
            content: open.content,
            model: self.model.clone(),
            parent_tool_use_id: Value::Null,
            error: open.error,
        };
        let frame = Frame {
            message,
            seq: Some(seq),
        };
        out.frames.extend(waited.into_iter().chain([frame]));
    }

    fn asks(&mut self, asked: &DecisionRequest, out: &mut Out) {
        let id = &asked.tool_use_id;
        if let Some(open) = self.open.as_mut().filter(|open| open.calls(id)) {
            let waited = open.complete.take();
            open.undecided.insert(id.clone());
            if let Some((seq, frame)) = waited {
                out.frames.push(frame);
                // An earlier connection did not know yet that there would be a question, and has told the call.
                if (seq..out.seq).contains(&self.seen) {
                    self.open = None;
                }
            }
        }
        out.push(permission_request(asked));
    }

    /// What tools returned.
    fn returned(&mut self, mut message: Value, is_subagents: bool, out: &mut Out) {
        let parent = message["parent_tool_use_id"].take();
        let results: Vec<Value> = blocks(message["message"]["content"].take())
            .into_iter()
            .filter(|block| block["type"] == "tool_result")
            .map(|mut block| {
                json!({
                    "type": "tool_result",
                    "tool_use_id": block["tool_use_id"].take(),
                    "content": in_one_text(block["content"].take()),
                    "is_error": block["is_error"].as_bool().unwrap_or(false),
                })
            })
            .collect();
        if results.is_empty() {
            return;
        }
        if !is_subagents {
            self.flush(out);
        }
        for result in &results {
            self.calls.returned(result);
        }
        out.push(ServerMessage::Assistant {
            content: results,
            model: self.model.clone(),
            parent_tool_use_id: parent,
            error: None,
        });
    }

    fn introduced(&mut self, mut message: Value, out: &mut Out) {
        if let Some(turn) = &mut self.turn {
            turn.introduced = true;
        }
        if let Some(model) = message["model"].as_str() {
            model.clone_into(&mut self.model);
        }
        let commands = blocks(message["slash_commands"].take());
        out.push(ServerMessage::system(
            "session_metadata",
            json!({
                "session_id": self.name, "model": message["model"], "permission_mode": message["permissionMode"],
                "tools": message["tools"], "mcp_servers": message["mcp_servers"], "agents": message["agents"],
                "cwd": message["cwd"], "claude_code_version": message["claude_code_version"],
            }),
        ));
        if !std::mem::replace(&mut self.commands_told, true) {
            let commands: Vec<Value> = commands
                .iter()
                .filter_map(Value::as_str)
                .map(|name| json!({ "name": slashed(name), "description": "", "args": "" }))
                .collect();
            out.push(ServerMessage::system(COMMANDS, json!({ "commands": commands })));
        }
    }

    fn result(&mut self, message: Value, out: &mut Out) {
        let is_turns = message["origin"]["kind"] != "task-notification";
        match &mut self.turn {
            // How the turn ended is known with the next event.
            Some(turn) if is_turns => {
                turn.result = Some(message);
                self.flush(out);
            }
            // Something in the background is done.
            _ => {
                self.flush(out);
                out.push(ServerMessage::System {
                    subtype: "background_result".to_owned(),
                    data: about(message),
                });
            }
        }
    }

    fn end(&mut self, change: &StatusChange, out: &mut Out) {
        let was_interrupted = change.status == SessionStatus::Idle;
        if was_interrupted {
            out.push(interrupted());
        }
        let Some(turn) = self.turn.take() else { return };
        let failed = change.status == SessionStatus::Error;
        if failed && turn.result.is_none() {
            let code = if turn.introduced {
                Code::ExecutionFailed
            } else {
                Code::ConnectionFailed
            };
            out.push(ServerMessage::error(
                code,
                change.error.clone().unwrap_or_default(),
            ));
        }
        let mut result = turn.result.unwrap_or_default();
        let number = |field: &str| result[field].as_u64().unwrap_or(0);
        let said = result["result"].as_str().map(str::to_owned);
        out.push(ServerMessage::Result {
            subtype: if failed || was_interrupted {
                "error"
            } else {
                "success"
            },
            session_id: self.name.clone(),
            duration_ms: number("duration_ms"),
            duration_api_ms: number("duration_api_ms"),
            num_turns: number("num_turns"),
            total_cost_usd: result["total_cost_usd"].as_f64().unwrap_or(0.0),
            is_error: failed,
            detail: result["subtype"].as_str().unwrap_or("agent_ended").to_owned(),
            interrupted: was_interrupted.then_some(true),
            result: if failed {
                change.error.clone().or(said)
            } else {
                said
            },
            permission_denials: Value::Array(blocks(result["permission_denials"].take())),
            usage: Some(result["usage"].take())
                .filter(Value::is_object)
                .unwrap_or_else(|| json!({ "input_tokens": 0, "output_tokens": 0 })),
        });
    }
}

fn permission_request(asked: &DecisionRequest) -> ServerMessage {
    let parsed = |raw: &RawJson| serde_json::from_str::<Value>(raw.as_str()).unwrap_or_default();
    ServerMessage::PermissionRequest {
        request_id: asked.id.to_string(),
        tool_name: asked.tool_name.clone(),
        input: parsed(&asked.input),
        permission_suggestions: asked.suggestions.as_ref().map(parsed).unwrap_or_default(),
        blocked_path: asked.blocked_path.clone(),
        tool_use_id: asked.tool_use_id.clone(),
        description: asked.description.clone(),
    }
}

fn slashed(name: &str) -> String {
    format!("/{}", name.trim_start_matches('/'))
}

/// A message without what every message has.
fn about(mut message: Value) -> Value {
    if let Some(fields) = message.as_object_mut() {
        for field in ["type", "subtype", "session_id", "uuid"] {
            fields.remove(field);
        }
    }
    message
}

fn blocks(content: Value) -> Vec<Value> {
    match content {
        Value::Array(blocks) => blocks,
        Value::String(text) => vec![json!({ "type": "text", "text": text })],
        _ => Vec::new(),
    }
}

/// The contract has a tool's output as text. Where there is more than text, the blocks stay as they are.
fn in_one_text(content: Value) -> Value {
    let Value::Array(blocks) = &content else {
        return if content.is_null() { json!("") } else { content };
    };
    let texts: Option<Vec<&str>> = blocks
        .iter()
        .map(|block| (block["type"] == "text").then(|| block["text"].as_str())?)
        .collect();
    texts.map_or_else(|| content.clone(), |texts| json!(texts.join("\n")))
}
