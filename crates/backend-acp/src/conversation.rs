//! One conversation with an ACP agent, as a fold over the agent's lines: it returns the lines to send and the events
//! for the session. No channel, no clock. After a crash the next server folds the same lines again and reaches the same
//! state; the results for lines that the last server has handled are dropped.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use bytes::Bytes;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tiller_acp::{
    Choices, ConfigOption, Incoming, Initialized, PROTOCOL_VERSION, PermissionOptionKind, PermissionRequest,
    Prompted, RpcError, SessionOpened, Update, method,
};
use tiller_core::backend::{AgentEvent, AgentQuestion, Exit, OptionChange, Options};
use tiller_core::{DecisionAnswer, Image, RawJson};
use tiller_process::Line;

use crate::known::Known;
use crate::options::{MODE, MODEL};
use crate::translate::Translator;

// The ids of our requests name their purpose, so that any server can match an answer.
const INITIALIZE: &str = "tiller-initialize";
const OPEN: &str = "tiller-open";
const FIRST_MODE: &str = "tiller-first-mode";
const FIRST_MODEL: &str = "tiller-first-model";
const SET: &str = "tiller-set-";
/// Begins the id of a prompt. Only the answer that ends a turn has it.
pub(crate) const PROMPT: &str = "tiller-prompt-";

const IMAGE: &str = "image";

/// The number under which the conversation is opened: once, and before all prompts, whose numbers are higher.
const OPENING: u64 = 1;

/// Modes in which agents ask before they act, the best known names first. Many agents start in a mode that does not
/// ask.
const CAREFUL_MODES: &[&str] = &["default", "ask", "approve", "manual", "build", "code"];

/// How the conversation is opened.
#[derive(Clone, Debug)]
pub(crate) struct Opening {
    /// The agent's title, for messages.
    pub(crate) agent: String,
    pub(crate) cwd: String,
    pub(crate) options: Options,
    /// The agent's id of the conversation to resume. `None`: a new one.
    pub(crate) resume: Option<String>,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Stage {
    Initializing,
    Opening,
    SettingMode,
    SettingModel,
    Ready,
}

/// The result of a line.
#[derive(Debug, Default)]
pub(crate) struct Step {
    pub(crate) tell: Vec<AgentEvent>,
    pub(crate) send: Vec<Line>,
    /// The agent can't be used, for this reason.
    pub(crate) fail: Option<Exit>,
    /// A turn has ended.
    pub(crate) turn_over: bool,
    /// What the agent reported about itself.
    pub(crate) known: Option<Known>,
}

pub(crate) struct Conversation {
    opening: Opening,
    stage: Stage,
    translator: Translator,
    takes_images: bool,
    /// The lines with which it was opened are no longer kept.
    opened_earlier: bool,
    modes: Option<Choices>,
    models: Option<Choices>,
    known: Known,
    /// How the user signs in, in the agent's words.
    sign_in: Option<String>,
    /// Prompts that arrived before the conversation was open.
    waiting: Vec<(u64, Vec<Value>)>,
    /// The agent's ids of pending permission requests.
    asked: Vec<Value>,
}

/// What is needed to answer a permission request, which a later server may have to do.
#[derive(Deserialize, Serialize)]
struct Asked {
    id: Value,
    allow: Option<String>,
    always: Option<String>,
    reject: Option<String>,
}

impl Conversation {
    pub(crate) fn new(run: String, conversation: String, opening: Opening) -> Self {
        Self {
            opening,
            stage: Stage::Initializing,
            translator: Translator::new(run, conversation),
            takes_images: false,
            opened_earlier: false,
            modes: None,
            models: None,
            known: Known::default(),
            sign_in: None,
            waiting: Vec::new(),
            asked: Vec::new(),
        }
    }

    /// For an agent whose first lines are no longer kept: its conversation is open.
    pub(crate) fn open_already(&mut self) {
        self.takes_images = true;
        self.opened_earlier = true;
        self.stage = Stage::Ready;
    }

    /// The request whose answer ends this stage: sent when the stage begins, and again by a server that finds it
    /// unanswered, because the last server may not have sent it.
    pub(crate) fn request(&self) -> Option<Line> {
        match self.stage {
            Stage::Initializing => {
                let params = json!({
                    "protocolVersion": PROTOCOL_VERSION,
                    "clientInfo": { "name": "tiller", "title": "Tiller", "version": env!("CARGO_PKG_VERSION") },
                    "clientCapabilities": { "fs": { "readTextFile": false, "writeTextFile": false }, "terminal": false },
                });
                Some(unnumbered(tiller_acp::request(
                    INITIALIZE,
                    method::INITIALIZE,
                    params,
                )))
            }
            Stage::Opening => {
                let mut params = json!({ "cwd": self.opening.cwd, "mcpServers": [] });
                let method = match &self.opening.resume {
                    Some(id) => {
                        params["sessionId"] = id.clone().into();
                        method::LOAD
                    }
                    None => method::NEW,
                };
                Some(Line {
                    json: tiller_acp::request(OPEN, method, params),
                    number: OPENING,
                })
            }
            Stage::SettingMode => Some(self.set(FIRST_MODE, MODE, &self.wanted_mode()?)),
            Stage::SettingModel => Some(self.set(FIRST_MODEL, MODEL, self.opening.options.text(MODEL)?)),
            Stage::Ready => None,
        }
    }

    /// The request that sets the mode or the model.
    fn set(&self, id: &str, option: &str, value: &str) -> Line {
        let session = &self.translator.conversation;
        let (choices, method, field) = if option == MODE {
            (&self.modes, method::SET_MODE, "modeId")
        } else {
            (&self.models, method::SET_MODEL, "modelId")
        };
        let config_id = choices.as_ref().and_then(|choices| choices.config_id.as_deref());
        unnumbered(match config_id {
            Some(config_id) => {
                let params = json!({ "sessionId": session, "configId": config_id, "value": value });
                tiller_acp::request(id, method::SET_CONFIG_OPTION, params)
            }
            None => tiller_acp::request(id, method, json!({ "sessionId": session, field: value })),
        })
    }

    /// The mode that is set before the first prompt, even if the user chose none.
    fn wanted_mode(&self) -> Option<String> {
        if let Some(mode) = self.opening.options.text(MODE) {
            return Some(mode.to_owned());
        }
        let modes = self.modes.as_ref()?;
        let has = |name: &&&str| modes.available.iter().any(|mode| mode == **name);
        let careful = CAREFUL_MODES.iter().find(has).map(|name| (*name).to_owned());
        careful.or_else(|| Some(modes.current.clone()).filter(|mode| !mode.is_empty()))
    }

    /// Processes a line that ends at `position`.
    pub(crate) fn hear(&mut self, line: &[u8], position: u64) -> Step {
        let mut step = Step::default();
        self.translator.at(position);
        match Incoming::parse(line) {
            Some(Incoming::Response { id, outcome }) => self.answered(&id, outcome, &mut step),
            Some(Incoming::Notification { method, params }) if method == method::UPDATE => {
                match Update::parse(&params) {
                    // An agent that loads a conversation repeats all of it.
                    _ if self.stage != Stage::Ready => {}
                    Update::Mode(mode) => self.mode_changed(&mode, &mut step),
                    Update::Config(options) => {
                        let choices = |category| ConfigOption::choices(&options, category);
                        self.models = choices(ConfigOption::MODEL).or(self.models.take());
                        if let Some(modes) = choices(ConfigOption::MODE) {
                            let mode = modes.current.clone();
                            let before = self.modes.replace(modes);
                            if before.is_none_or(|before| before.current != mode) {
                                self.mode_changed(&mode, &mut step);
                            }
                        }
                    }
                    update => self.translator.update(update),
                }
            }
            Some(Incoming::Request { id, method, params }) if method == method::REQUEST_PERMISSION => {
                self.asks(id, params, &mut step);
            }
            Some(Incoming::Request { id, method, .. }) => {
                let message = format!("This client does not support the method '{method}'.");
                let refusal = tiller_acp::error(&id, RpcError::METHOD_NOT_FOUND, &message);
                step.send.push(unnumbered(refusal));
            }
            Some(Incoming::Notification { .. }) | None => {}
        }
        let mut told = self.translator.take();
        told.append(&mut step.tell);
        step.tell = told;
        step
    }

    fn answered(&mut self, id: &str, outcome: Result<Value, RpcError>, step: &mut Step) {
        if id.starts_with(PROMPT) {
            let outcome = outcome.map(read::<Prompted>);
            self.translator.prompted(outcome);
            self.asked.clear();
            step.turn_over = true;
            return;
        }
        if let Some(set) = id.strip_prefix(SET) {
            if let Some((name, value)) = set.split_once('=') {
                let change = OptionChange::new(name, value);
                match outcome {
                    Ok(_) => {
                        self.chosen(name, value);
                        step.tell.push(AgentEvent::Configured { change, done: true });
                    }
                    Err(error) => step.tell.extend(self.not_changed(change, &error.message)),
                }
            }
            return;
        }
        match (id, self.stage) {
            (INITIALIZE, Stage::Initializing) => match outcome {
                Ok(value) => {
                    let told: Initialized = read(value);
                    self.known.version = told
                        .agent_info
                        .map(|info| info.version)
                        .filter(|version| !version.is_empty());
                    let mut methods = told.auth_methods.into_iter();
                    self.sign_in =
                        methods.find_map(|method| method.description.filter(|words| !words.is_empty()));
                    self.takes_images = told.agent_capabilities.prompt_capabilities.image;
                    if self.opening.resume.is_some() && !told.agent_capabilities.load_session {
                        // The agent can't load conversations: the next message starts a new one.
                        step.fail = Some(Exit::Expired);
                        return;
                    }
                    self.stage = Stage::Opening;
                    step.send.extend(self.request());
                }
                Err(error) => step.fail = Some(self.not_started(&error)),
            },
            (OPEN, Stage::Opening) => match outcome {
                Ok(value) => {
                    let opened: SessionOpened = read(value);
                    self.modes = opened.modes();
                    self.models = opened.models();
                    self.known.signed_in = Some(true);
                    let available = |choices: &Option<Choices>| {
                        choices
                            .as_ref()
                            .map(|choices| choices.available.clone())
                            .unwrap_or_default()
                    };
                    self.known.modes = available(&self.modes);
                    self.known.models = available(&self.models);
                    step.known = Some(self.known.clone());
                    if let Some(conversation) = opened.session_id.or_else(|| self.opening.resume.clone()) {
                        self.translator.conversation = conversation;
                    }
                    let model = self.models.as_ref().map(|models| models.current.clone());
                    let model = self.opening.options.text(MODEL).map(str::to_owned).or(model);
                    let mode = self.wanted_mode();
                    self.translator
                        .opened(&self.opening.cwd, mode.as_deref(), model.as_deref());
                    self.stage = Stage::SettingMode;
                    self.go_on(step);
                }
                Err(error) if error.code == RpcError::AUTHENTICATION_REQUIRED => {
                    self.known.signed_in = Some(false);
                    step.known = Some(self.known.clone());
                    step.fail = Some(self.not_signed_in());
                }
                Err(_) if self.opening.resume.is_some() => step.fail = Some(Exit::Expired),
                Err(error) => step.fail = Some(self.not_started(&error)),
            },
            (FIRST_MODE, Stage::SettingMode) => {
                if let Err(error) = outcome {
                    // In a mode that the user did not choose, the agent might not ask.
                    step.fail = Some(self.not_started(&error));
                    return;
                }
                if let Some(mode) = self.wanted_mode() {
                    self.chosen(MODE, &mode);
                }
                self.stage = Stage::SettingModel;
                self.go_on(step);
            }
            (FIRST_MODEL, Stage::SettingModel) => {
                if let Err(error) = outcome {
                    step.fail = Some(self.not_started(&error));
                    return;
                }
                self.stage = Stage::Ready;
                self.go_on(step);
            }
            _ => {}
        }
    }

    /// Sends the next request that the opening needs. After the last one, prompts are sent.
    fn go_on(&mut self, step: &mut Step) {
        loop {
            if let Some(request) = self.request() {
                step.send.push(request);
                return;
            }
            self.stage = match self.stage {
                Stage::SettingMode => Stage::SettingModel,
                Stage::SettingModel => Stage::Ready,
                Stage::Ready => {
                    for (number, content) in std::mem::take(&mut self.waiting) {
                        step.send.push(self.prompt_line(number, &content));
                    }
                    return;
                }
                Stage::Initializing | Stage::Opening => return,
            };
        }
    }

    fn asks(&mut self, id: Value, params: Value, step: &mut Step) {
        use PermissionOptionKind::{AllowAlways, AllowOnce, RejectAlways, RejectOnce};
        let request: PermissionRequest = read(params);
        let option = |kinds: &[PermissionOptionKind]| request.option(kinds).map(str::to_owned);
        let asked = Asked {
            id: id.clone(),
            allow: option(&[AllowOnce, AllowAlways]),
            always: option(&[AllowAlways]),
            reject: option(&[RejectOnce, RejectAlways]),
        };
        let tool_use_id = request.tool_call.tool_call_id.clone();
        let description = request.tool_call.title.clone();
        let (tool_name, input) = self.translator.asked(request.tool_call);
        // The rule for 'always', if the agent offers it.
        let suggestions = asked.always.as_ref().map(|_| {
            json!([{
                "type": "addRules", "rules": [{ "toolName": tool_name }], "behavior": "allow", "destination": "session",
            }])
        });
        self.asked.push(id);
        let (Ok(agent_request), Ok(input)) = (serde_json::to_string(&asked), RawJson::of(&input)) else {
            return;
        };
        step.tell.push(AgentEvent::Asked(Box::new(AgentQuestion {
            agent_request,
            tool_use_id,
            tool_name,
            input,
            suggestions: suggestions.and_then(|rules| RawJson::of(&rules).ok()),
            description,
            blocked_path: None,
            always_ask: false,
        })));
    }

    /// The lines that carry an answer to the agent.
    pub(crate) fn answer(&mut self, agent_request: &str, answer: &DecisionAnswer, number: u64) -> Vec<Line> {
        let Ok(asked) = serde_json::from_str::<Asked>(agent_request) else {
            return Vec::new();
        };
        self.asked.retain(|id| *id != asked.id);
        let option = match answer {
            DecisionAnswer::Allow {
                permissions: Some(_), ..
            } => asked.always.or(asked.allow),
            DecisionAnswer::Allow {
                permissions: None, ..
            } => asked.allow,
            DecisionAnswer::Deny { .. } => asked.reject,
        };
        let outcome = match option {
            Some(option) => json!({ "outcome": "selected", "optionId": option }),
            None => json!({ "outcome": "cancelled" }),
        };
        let mut lines = vec![Line {
            json: tiller_acp::response(&asked.id, json!({ "outcome": outcome })),
            number,
        }];
        if matches!(answer, DecisionAnswer::Deny { interrupt: true, .. }) {
            lines.extend(self.cancel());
        }
        lines
    }

    /// The lines that send a prompt to the agent, now or when the conversation is open.
    pub(crate) fn prompt(&mut self, words: &str, images: &[Image], number: u64) -> Vec<Line> {
        let mut content = vec![json!({ "type": "text", "text": words })];
        content.extend(images.iter().map(|image| {
            json!({ "type": IMAGE, "mimeType": image.media_type, "data": BASE64.encode(&image.bytes) })
        }));
        if self.stage == Stage::Ready {
            return vec![self.prompt_line(number, &content)];
        }
        // The agent assigns the conversation's id when it opens it.
        self.waiting.push((number, content));
        Vec::new()
    }

    fn prompt_line(&self, number: u64, content: &[Value]) -> Line {
        let id = format!("{PROMPT}{number}");
        // Whether the agent supports images is known when the conversation is open.
        let seen = |block: &&Value| self.takes_images || block.get("type").is_none_or(|kind| kind != IMAGE);
        let content: Vec<_> = content.iter().filter(seen).collect();
        let params = json!({ "sessionId": self.translator.conversation, "prompt": content });
        Line {
            json: tiller_acp::request(&id, method::PROMPT, params),
            number,
        }
    }

    /// The lines that stop the turn, which cancels the agent's open permission requests.
    pub(crate) fn cancel(&mut self) -> Vec<Line> {
        let params = json!({ "sessionId": self.translator.conversation });
        let cancelled = json!({ "outcome": { "outcome": "cancelled" } });
        let withdrawn = std::mem::take(&mut self.asked);
        let withdrawn = withdrawn
            .iter()
            .map(|id| unnumbered(tiller_acp::response(id, cancelled.clone())));
        let cancel = tiller_acp::notification(method::CANCEL, params);
        std::iter::once(unnumbered(cancel)).chain(withdrawn).collect()
    }

    /// Changes an option of a running agent. A value that the agent does not offer is refused at once.
    pub(crate) fn configure(&self, change: OptionChange) -> Step {
        let mut step = Step::default();
        let (choices, what) = match change.name.as_str() {
            MODE => (&self.modes, "mode"),
            MODEL => (&self.models, "model"),
            // Only these options can be changed while the agent runs.
            _ => return step,
        };
        let Some(value) = change.value.as_ref().and_then(Value::as_str) else {
            return step;
        };
        match choices {
            Some(choices) if !choices.available.iter().any(|offered| offered == value) => {
                let reason = format!(
                    "there is no {what} '{value}'. Available: {}",
                    choices.available.join(", ")
                );
                step.tell = self.not_changed(change, &reason);
            }
            // An agent whose first lines are no longer kept may still offer some.
            None if self.stage == Stage::Ready && !self.opened_earlier => {
                step.tell = self.not_changed(change, &format!("it offers no {what}s"));
            }
            _ => {
                let id = format!("{SET}{}={value}", change.name);
                step.send.push(self.set(&id, &change.name, value));
            }
        }
        step
    }

    /// The agent confirmed a choice.
    fn chosen(&mut self, option: &str, value: &str) {
        let choices = if option == MODE {
            &mut self.modes
        } else {
            &mut self.models
        };
        if let Some(choices) = choices {
            value.clone_into(&mut choices.current);
        }
    }

    fn mode_changed(&mut self, mode: &str, step: &mut Step) {
        self.chosen(MODE, mode);
        step.tell.push(changed(MODE, mode));
    }

    /// Tells the session and its user that an option was not changed, and why.
    fn not_changed(&self, change: OptionChange, reason: &str) -> Vec<AgentEvent> {
        let text = format!(
            "{} did not change its {}: {reason}.",
            self.opening.agent, change.name
        );
        let configured = AgentEvent::Configured { change, done: false };
        vec![configured, AgentEvent::notice(&text)]
    }

    fn not_started(&self, error: &RpcError) -> Exit {
        if error.code == RpcError::AUTHENTICATION_REQUIRED {
            return self.not_signed_in();
        }
        Exit::NotStarted {
            message: format!("{} did not start: {}", self.opening.agent, error.message),
        }
    }

    fn not_signed_in(&self) -> Exit {
        let how = self
            .sign_in
            .as_deref()
            .unwrap_or("Start it in a terminal and sign in there.");
        Exit::NotStarted {
            message: format!("{} is not signed in. {how}", self.opening.agent),
        }
    }
}

fn unnumbered(json: Bytes) -> Line {
    Line { json, number: 0 }
}

/// Ignores invalid data: the conversation continues without it.
fn read<T: for<'de> Deserialize<'de> + Default>(value: Value) -> T {
    serde_json::from_value(value).unwrap_or_default()
}

fn changed(name: &str, value: &str) -> AgentEvent {
    let status = json!({ "type": "system", "subtype": "status", "status": null, name: value });
    let meaning = tiller_core::backend::Meaning::Option(OptionChange::new(name, value));
    message(&status, meaning)
}

fn message(json: &Value, meaning: tiller_core::backend::Meaning) -> AgentEvent {
    AgentEvent::Message {
        // A value that was just built can always be serialized.
        raw: RawJson::of(json).unwrap_or_else(|_| RawJson::checked("null".into())),
        uuid: None,
        meaning,
    }
}

#[cfg(test)]
mod tests;
