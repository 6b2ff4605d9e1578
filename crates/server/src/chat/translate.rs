//! Translates between the chat API's messages and the core's types. Pure: the same events lead to the same frames, so
//! that a reconnecting client gets what it missed.

mod calls;
#[cfg(test)]
mod tests;

use std::collections::HashSet;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tiller_core::backend::HookCall;
use tiller_core::{
    Behavior, DecisionAnswer, DecisionRequest, Event, EventBody, NewImage, NewPrompt, Prompt, RawJson,
    SessionRecord, SessionStatus, Settings, StatusChange,
};
use tiller_message::{
    AssistantMessage, Block, Body, Content, EchoedMessage, Init, Kind, Message, StreamEventKind,
    SystemMessage, TurnResult, Usage,
};

use self::calls::Calls;
use crate::options::{self, PermissionMode};

use super::parse::Refused;
use super::wire::{Code, Decision, Frame, PermissionResponse, Said, ServerMessage, UserContent};

/// The tools of an agent that has not reported its own list yet.
const USUAL_TOOLS: &[&str] = &["Bash", "Read", "Edit", "Write", "Grep", "Glob"];

/// The model's name if the agent chooses the model.
const DEFAULT_MODEL: &str = "default";

pub(super) fn answer(response: PermissionResponse) -> Result<DecisionAnswer, Refused> {
    let raw = |error: serde_json::Error| Refused(Code::ParseError, error.to_string());
    Ok(match response.decision {
        Decision::Allow => DecisionAnswer::Allow {
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
        Decision::Deny => DecisionAnswer::Deny {
            message: response.message,
            interrupt: response.interrupt.unwrap_or(false),
        },
    })
}

/// Model names that every release of the agent knows. Listed models have one of these names, or a full name.
const MODEL_ALIASES: &[&str] = &["sonnet", "opus", "haiku", "fable", "best", "opusplan"];

/// The model to set; `None` leaves the choice to the agent. `offered`: the agent's list of models, if known.
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
    let reason = format!("Unknown model '{}'.", tiller_core::repeated(name));
    Err(Refused(Code::InvalidModel, reason))
}

/// The echo of a prompt.
pub(super) fn echo(name: &str, prompt: &Prompt) -> ServerMessage {
    ServerMessage::UserMessage {
        session_id: name.to_owned(),
        message: Said {
            content: prompt.text.clone(),
            parent_tool_use_id: prompt.parent_tool_use_id.clone(),
        },
        uuid: prompt.id.to_string(),
    }
}

/// The prompt of a user message.
pub(super) fn prompt(said: UserContent) -> Result<NewPrompt, Refused> {
    let images = said.images.into_iter().map(|image| {
        let bytes = BASE64
            .decode(image.data.as_bytes())
            .map_err(|_| Refused(Code::InvalidImage, "An image is not valid base64.".to_owned()))?;
        Ok(NewImage {
            media_type: image.media_type,
            name: image.name,
            bytes,
        })
    });
    Ok(NewPrompt {
        afresh: false,
        id: None,
        text: said.content,
        parent_tool_use_id: said.parent_tool_use_id,
        images: images.collect::<Result<_, Refused>>()?,
        context: said.context,
    })
}

/// The names of hook events. New releases add some, so only the syntax is checked.
pub(super) fn hook_events(events: Vec<String>) -> Result<Vec<String>, Refused> {
    let is_name = |event: &String| {
        (1..=MAX_EVENT_NAME).contains(&event.len())
            && event.chars().all(|letter| letter.is_ascii_alphabetic())
    };
    if events.len() > MAX_EVENTS || !events.iter().all(is_name) {
        let reason = "'events' must be a list of hook events such as PreToolUse.".to_owned();
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

/// Adds descriptions from the agent's list to commands that the agent has only named.
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
    let reason = format!(
        "Unknown permission mode '{}'. Use one of {}.",
        tiller_core::repeated(mode),
        modes.join(", ")
    );
    Refused(Code::InvalidPermissionMode, reason)
}

/// The agent's own description, from its first `init` message.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Introduction {
    model: Option<String>,
    tools: Option<Vec<String>>,
}

impl Introduction {
    /// Finds the introduction among a session's events.
    pub(super) fn find(events: &[Event]) -> Option<Self> {
        events.iter().find_map(|event| match &event.body {
            EventBody::Message { raw, .. } => {
                let message = Message::parse_shared(Arc::clone(raw.shared())).ok()?;
                match message.subtype().map(|_| message.body())? {
                    Body::System(SystemMessage::Init(init)) => Some(Self {
                        model: Some(init.model).filter(|model| !model.is_empty()),
                        tools: Some(init.tools),
                    }),
                    _ => None,
                }
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

/// The client's position is not in this session's log: it has to load the session again from the beginning.
pub(super) fn reset(last_seq: u64) -> ServerMessage {
    ServerMessage::system("reset", json!({ "last_seq": last_seq }))
}

pub(super) fn interrupted() -> ServerMessage {
    let message = "Operation interrupted by user";
    ServerMessage::system("interrupted", json!({ "message": message }))
}

/// Translates a session's events in order, beginning with the prompt of a turn.
pub(super) struct Translator {
    name: String,
    /// An earlier connection has sent everything up to this event.
    seen: u64,
    model: String,
    /// The complete blocks of the message that is being streamed.
    open: Option<Open>,
    turn: Option<Turn>,
    commands_told: bool,
    calls: Calls,
}

/// The agent sends a message block by block; the contract has whole messages. If the agent asks for permission before a
/// tool call, the contract has the request first and then the call.
struct Open {
    id: String,
    content: Vec<Block>,
    error: Option<String>,
    /// The event that completed the message, and its frame, which waits with the message.
    complete: Option<(u64, Frame)>,
    /// The calls that wait for a decision.
    undecided: HashSet<String>,
}

#[derive(Default)]
struct Turn {
    introduced: bool,
    result: Option<TurnResult>,
}

impl Open {
    fn calls(&self, tool_use_id: &str) -> bool {
        let mut blocks = self.content.iter();
        blocks.any(|block| matches!(block, Block::ToolUse(call) if call.id == tool_use_id))
    }

    fn calls_any(&self) -> bool {
        self.content
            .iter()
            .any(|block| matches!(block, Block::ToolUse(_)))
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
            command_id: None,
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

    /// Whether a call is held back because the agent may be about to ask for permission. If no event follows, call
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
                out.push(echo(&self.name, prompt));
            }
            EventBody::Message { raw, .. } => {
                if let Ok(message) = Message::parse_shared(Arc::clone(raw.shared())) {
                    // In this API a stop has its own message, which precedes the turn's result.
                    let message = message.stopped_result().unwrap_or(message);
                    self.message(&message, &mut out);
                }
            }
            EventBody::Unreadable(line) => {
                let message = Message::unreadable(line.reason, line.line.as_bytes());
                self.message(&message, &mut out);
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

    fn message(&mut self, message: &Message, out: &mut Out) {
        if matches!(message.kind(), Kind::StreamEvent | Kind::Assistant) {
            self.tell_failures(out);
        }
        match message.kind() {
            Kind::StreamEvent => self.piece(message, out),
            Kind::Assistant | Kind::User | Kind::Result => match message.body() {
                Body::Assistant(assistant) => self.said(assistant, out),
                Body::User(user) => self.returned(&user, out),
                Body::Result(result) => self.result(message, result, out),
                // The body has the kind.
                _ => {}
            },
            Kind::System => match (message.subtype(), message.body()) {
                (_, Body::System(SystemMessage::Init(init))) => self.introduced(&init, out),
                // `status` is this API's name for settings; the agent's own `status` is about its activity.
                (Some("status"), _) => out.push(about("agent_status", message)),
                (subtype, _) => out.push(about(subtype.unwrap_or("notification"), message)),
            },
            // A message without a type can't be named here.
            _ if message.type_name().is_empty() => {}
            _ => out.push(about(message.type_name(), message)),
        }
    }

    fn piece(&mut self, message: &Message, out: &mut Out) {
        let parent = message.parent_tool_use_id();
        let ends = message.stream_event_kind() == Some(StreamEventKind::MessageStop) && parent.is_none();
        let event = message
            .stream_event_json()
            .and_then(|json| RawJson::parse(json).ok());
        out.push(ServerMessage::Stream {
            uuid: message.uuid().into(),
            session_id: self.name.clone(),
            event,
            parent_tool_use_id: parent.into(),
        });
        let Some(open) = self.open.as_mut().filter(|_| ends) else {
            return;
        };
        if !open.calls_any() {
            self.flush(out);
        } else if open.undecided.is_empty() {
            // Both are held: a client that gets the end of a message must have all of it.
            open.complete = out.frames.pop().map(|frame| (out.seq, frame));
        }
    }

    fn said(&mut self, assistant: AssistantMessage, out: &mut Out) {
        let message = assistant.message;
        for call in message.content.iter().filter_map(|block| match block {
            Block::ToolUse(call) => Some(call),
            _ => None,
        }) {
            self.calls.called(&call.id, &call.name);
        }
        if let Some(parent) = assistant.parent_tool_use_id {
            let model = Some(message.model).filter(|model| !model.is_empty());
            out.push(ServerMessage::Assistant {
                content: message.content.iter().map(as_json).collect(),
                model: model.unwrap_or_else(|| self.model.clone()),
                parent_tool_use_id: parent.into(),
                error: None,
            });
            return;
        }
        let same = |open: &Open| open.id == message.id && open.complete.is_none();
        if !self.open.as_ref().is_some_and(same) {
            self.flush(out);
        }
        if !message.model.is_empty() {
            self.model = message.model;
        }
        let open = self.open.get_or_insert_with(|| Open {
            id: message.id,
            content: Vec::new(),
            error: None,
            complete: None,
            undecided: HashSet::new(),
        });
        open.content.extend(message.content);
        open.error = assistant.error.or(open.error.take());
    }

    /// Sends what is held back.
    fn flush(&mut self, out: &mut Out) {
        let Some(open) = self.open.take() else { return };
        let waited = open.complete.map(|(_, frame)| frame);
        let seq = waited.as_ref().and_then(|frame| frame.seq).unwrap_or(out.seq);
        let message = ServerMessage::Assistant {
            content: open.content.iter().map(as_json).collect(),
            model: self.model.clone(),
            parent_tool_use_id: Value::Null,
            error: open.error.map(Value::from),
        };
        let frame = Frame {
            message,
            command_id: None,
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
                // An earlier connection sent the call before the request was known.
                if (seq..out.seq).contains(&self.seen) {
                    self.open = None;
                }
            }
        }
        out.push(permission_request(asked));
    }

    /// Translates the results of tools.
    fn returned(&mut self, user: &EchoedMessage, out: &mut Out) {
        let blocks = user.message.content.blocks().iter();
        let returned = blocks.filter_map(|block| match block {
            Block::ToolResult(result) => Some(result),
            _ => None,
        });
        let results: Vec<(&str, bool, Value)> = returned
            .map(|result| {
                (
                    &*result.tool_use_id,
                    result.is_error,
                    in_one_text(&result.content),
                )
            })
            .collect();
        if results.is_empty() {
            return;
        }
        if user.parent_tool_use_id.is_none() {
            self.flush(out);
        }
        for (id, is_error, content) in &results {
            self.calls.returned(id, *is_error, content);
        }
        let results = results.into_iter().map(|(id, is_error, content)| {
            json!({ "type": "tool_result", "tool_use_id": id, "content": content, "is_error": is_error })
        });
        out.push(ServerMessage::Assistant {
            content: results.collect(),
            model: self.model.clone(),
            parent_tool_use_id: user.parent_tool_use_id.clone().into(),
            error: None,
        });
    }

    fn introduced(&mut self, init: &Init, out: &mut Out) {
        if let Some(turn) = &mut self.turn {
            turn.introduced = true;
        }
        if !init.model.is_empty() {
            init.model.clone_into(&mut self.model);
        }
        out.push(ServerMessage::system(
            "session_metadata",
            json!({
                "session_id": self.name, "model": init.model, "permission_mode": init.permission_mode,
                "tools": init.tools, "mcp_servers": init.mcp_servers, "agents": init.agents,
                "cwd": init.cwd, "claude_code_version": init.claude_code_version,
            }),
        ));
        if !std::mem::replace(&mut self.commands_told, true) {
            let names = init.slash_commands.iter();
            let commands: Vec<Value> = names
                .map(|name| json!({ "name": slashed(name), "description": "", "args": "" }))
                .collect();
            out.push(ServerMessage::system(COMMANDS, json!({ "commands": commands })));
        }
    }

    fn result(&mut self, message: &Message, result: TurnResult, out: &mut Out) {
        match &mut self.turn {
            // The next event says how the turn ended.
            Some(turn) if !result.is_background() => {
                turn.result = Some(result);
                self.flush(out);
            }
            // A background task ended.
            _ => {
                self.flush(out);
                out.push(about("background_result", message));
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
        let result = turn.result.unwrap_or_default();
        let detail = Some(result.subtype).filter(|subtype| !subtype.is_empty());
        out.push(ServerMessage::Result {
            subtype: if failed || was_interrupted {
                "error"
            } else {
                "success"
            },
            session_id: self.name.clone(),
            duration_ms: result.duration_ms,
            duration_api_ms: result.duration_api_ms,
            num_turns: result.num_turns,
            total_cost_usd: result.total_cost_usd,
            is_error: failed,
            detail: detail.unwrap_or_else(|| "agent_ended".to_owned()),
            interrupted: was_interrupted.then_some(true),
            result: if failed {
                change.error.clone().or(result.result)
            } else {
                result.result
            },
            permission_denials: as_json(&result.permission_denials),
            usage: if result.usage == Usage::default() {
                json!({ "input_tokens": 0, "output_tokens": 0 })
            } else {
                as_json(&result.usage)
            },
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

/// A message of the agent under this subtype, without the common fields.
fn about(subtype: &str, message: &Message) -> ServerMessage {
    ServerMessage::System {
        subtype: subtype.to_owned(),
        data: Value::Object(message.details()),
    }
}

/// Serializes a type of the message language. It was read from JSON, so this can't fail.
fn as_json(record: &impl Serialize) -> Value {
    serde_json::to_value(record).unwrap_or_default()
}

/// The contract has a tool's output as text. Output with other blocks is sent unchanged.
fn in_one_text(content: &Content) -> Value {
    let texts: Option<Vec<&str>> = match content {
        Content::Text(text) => return json!(text),
        Content::Blocks(blocks) => blocks.iter().map(Block::as_text).collect(),
    };
    texts.map_or_else(|| as_json(content), |texts| json!(texts.join("\n")))
}
