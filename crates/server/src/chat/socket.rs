//! One connection to the chat API: a loop that reads messages, follows its session, and writes frames. Commands run
//! beside the loop, one at a time: the next message is read when the previous command is done.

use std::collections::{HashMap, HashSet};
use std::time::{Duration, Instant};

use axum::extract::ws::rejection::WebSocketUpgradeRejection;
use axum::extract::ws::{Message, Utf8Bytes, WebSocket, WebSocketUpgrade};
use axum::extract::{Extension, Query, State};
use axum::response::Response;
use futures_util::SinkExt;
use serde::Deserialize;
use tiller_core::{
    Accepted, CommandError, DecisionRef, EventBody, LiveFeed, NewPrompt, Notice, OptionChange, PromptId,
    RawJson, SessionId, SessionRecord, SessionStatus, Sessions, Settings, SettingsPatch, StartSession,
};

use super::pace::Pace;
use super::parse::{Refused, parse};
use super::translate::{self, Introduction, Translator};
use super::wire::{ClientMessage, Code, CommandId, Frame, ServerMessage};
use crate::app::App;
use crate::auth::Visitor;
use crate::error::ApiError;
use crate::follow::{Follow, Step, prompt_before};
use crate::openapi::{ErrorBody, Refusals};
use crate::options::{self, PermissionMode};
use crate::oversize;
use crate::pulse::Pulse;
use crate::underway::{Order, Underway};

/// After this time without any frame, not even a pong, the client counts as gone.
const SILENCE: Duration = Duration::from_mins(1);

/// A write that takes this long means that the client does not read.
const STUCK_WRITE: Duration = Duration::from_secs(30);

/// How long a tool call is held back in case the agent asks for permission first, which it does within a few
/// milliseconds on an idle machine. A call that ends sooner is sent with its result.
const HOLD: Duration = Duration::from_secs(1);

/// The agent's `init` message is among the first events of a session.
const INTRODUCTION_WITHIN: u32 = 64;

/// The name of a session whose client does not choose one.
const DEFAULT_NAME: &str = "default";

/// How many of the client's own prompt ids are remembered until the prompts' events arrive.
const REMEMBERED: usize = 1024;

#[derive(Deserialize)]
pub(crate) struct Options {
    session_id: Option<String>,
    cwd: Option<String>,
    /// The agent of a session that is started here.
    agent: Option<String>,
    after_seq: Option<u64>,
}

/// The chat API: a WebSocket that is one conversation
#[utoipa::path(
    get, operation_id = "chat", path = "/ws", tag = "sessions", params(
    ("session_id" = Option<String>, Query, description = "A session's id, or any name; `default` unless given."),
    ("cwd" = Option<String>, Query, description = "Where a new session works."),
    ("after_seq" = Option<usize>, Query, description = "Replays what came after it."),
),
    extensions(("x-summary-zh-CN" = json!("聊天 API：一条 WebSocket 就是一个会话")), ("x-scope" = json!("read"))),
    responses(
    (status = 101, description = "The WebSocket is open."),
    (status = 400, body = ErrorBody, description = "Not a WebSocket, or a working directory that may not be used."),
    (status = 422, body = ErrorBody), Refusals,
))]
pub(crate) async fn upgrade(
    State(app): State<App>,
    Extension(visitor): Extension<Visitor>,
    options: Result<Query<Options>, axum::extract::rejection::QueryRejection>,
    upgrade: Result<WebSocketUpgrade, WebSocketUpgradeRejection>,
) -> Result<Response, ApiError> {
    let upgrade = upgrade.map_err(|_| ApiError::NotAWebSocket)?;
    let Query(options) = options.map_err(|_| ApiError::WrongForm)?;
    if !visitor.viewer.scopes.read {
        return Err(ApiError::Forbidden);
    }
    let name = options.session_id.filter(|name| !name.is_empty());
    let name = name.unwrap_or_else(|| DEFAULT_NAME.to_owned());
    let sessions = app.sessions.for_viewer(visitor.viewer.clone());
    // Subscribed before anything is read, so that no event is missed between log and live feed.
    let feed = sessions.watch();
    let session = sessions.named(&name).await?;
    let cwd = options.cwd.filter(|cwd| !cwd.is_empty());
    if session.is_none() {
        sessions
            .paths()
            .working_directory(cwd.as_deref())
            .await
            .map_err(CommandError::from)?;
    }
    let mut connection = Connection {
        sessions,
        name,
        cwd,
        agent: options.agent,
        initial_settings: Settings::default(),
        source: Source::NoSession(feed),
        hooks: Vec::new(),
        sent_settings: None,
        pace: Pace::default(),
        labels: HashMap::new(),
        underway: Underway::new(1),
        recheck: false,
    };
    Ok(oversize::limited(upgrade).on_upgrade(async move |socket| {
        let mut socket = Writer(socket, app.clone(), visitor.clone());
        if let Err(Gone) = connection
            .run(&mut socket, &app, &visitor, session, options.after_seq)
            .await
        {
            tracing::debug!("a chat client disconnected");
        }
        // Everything else is dropped first: a feed that is not read keeps its unread events.
        drop(socket);
        let Connection { underway, .. } = connection;
        underway.finish().await;
    }))
}

/// The client is gone or must be disconnected.
struct Gone;

struct Writer(WebSocket, App, Visitor);

struct Connection {
    sessions: Sessions,
    /// The client's name for the session.
    name: String,
    /// The working directory of a session that is started here.
    cwd: Option<String>,
    /// The agent of a session that is started here.
    agent: Option<String>,
    /// The settings of a session that is started here.
    initial_settings: Settings,
    source: Source,
    /// The hook events of a session that is started here.
    hooks: Vec<String>,
    /// The settings that were last sent to the client.
    sent_settings: Option<SettingsStatus>,
    pace: Pace,
    /// The client's own ids of prompts whose events have not arrived, if they are not UUIDs.
    labels: HashMap<PromptId, String>,
    /// At most one command: each depends on the outcome of the one before.
    underway: Underway<(Option<CommandId>, Outcome)>,
    /// The session changed while a command was running, which may be the cause; checked when the command is done.
    recheck: bool,
}

/// The outcome of a command that ran beside the loop.
enum Outcome {
    /// Whether this prompt was accepted.
    Prompted(PromptId, Result<Accepted, CommandError>),
    Configured(Box<Settings>, Result<(), CommandError>),
    HooksRegistered(Vec<String>, Result<(), CommandError>),
    /// A success that the session's events report.
    Other(Result<(), CommandError>),
}

/// The settings in a `status` message.
#[derive(Eq, PartialEq)]
struct SettingsStatus {
    model: Option<String>,
    permission_mode: PermissionMode,
}

impl SettingsStatus {
    fn of(settings: &Settings) -> Self {
        Self {
            model: options::text(&settings.options, options::MODEL),
            permission_mode: PermissionMode::of(&settings.options),
        }
    }
}

enum Source {
    /// No session with this name exists yet; another client may start it.
    NoSession(LiveFeed),
    Session(Box<FollowedSession>),
}

struct FollowedSession {
    follow: Follow,
    translator: Translator,
    /// The client has all frames up to this event.
    seen: u64,
    /// But not these requests: a pending decision must reach clients that connect later.
    waiting: HashSet<String>,
}

impl FollowedSession {
    /// Removes the frames that the client already has.
    fn unseen(&mut self, frames: Vec<Frame>) -> Vec<Frame> {
        let is_new = |frame: &Frame| match &frame.message {
            ServerMessage::PermissionRequest { request_id, .. } if self.waiting.remove(request_id) => true,
            _ => frame.seq > Some(self.seen),
        };
        frames.into_iter().filter(is_new).collect()
    }
}

enum SourceEvent {
    Step(Step),
    /// A session was started that may have this name.
    Started,
    Closed,
}

impl Source {
    async fn next(&mut self) -> SourceEvent {
        match self {
            Self::Session(conversation) => SourceEvent::Step(conversation.follow.next().await),
            Self::NoSession(feed) => loop {
                match feed.next().await {
                    None => return SourceEvent::Closed,
                    Some(Ok(Notice::Event(event))) if event.seq == 1 => return SourceEvent::Started,
                    Some(Err(_lagged)) => return SourceEvent::Started,
                    Some(Ok(_)) => {}
                }
            },
        }
    }

    fn holds(&self) -> bool {
        matches!(self, Self::Session(conversation) if conversation.translator.holds())
    }

    fn session(&self) -> Option<SessionId> {
        match self {
            Self::Session(conversation) => Some(conversation.follow.session()),
            Self::NoSession(_) => None,
        }
    }
}

impl Connection {
    async fn run(
        &mut self,
        socket: &mut Writer,
        app: &App,
        visitor: &Visitor,
        session: Option<SessionId>,
        after_seq: Option<u64>,
    ) -> Result<(), Gone> {
        self.greet(socket, session, after_seq).await?;
        let mut pulse = Pulse::new(app, visitor);
        let mut last_frame = Instant::now();
        loop {
            let holds = self.source.holds();
            let listens = self.underway.has_room();
            tokio::select! {
                frame = oversize::receive(&mut socket.0, visitor), if listens => {
                    last_frame = Instant::now();
                    match frame {
                        Some(Ok(Message::Text(text))) if oversize::is_too_long(&text) => {
                            socket.refuse(Refused(Code::ParseError, oversize::TOO_LONG.to_owned()), None).await?;
                        }
                        Some(Ok(Message::Text(text))) => self.frame(socket, &text).await?,
                        Some(Ok(Message::Binary(_))) => {
                            socket.refuse(Refused(Code::ParseError, "Send text frames with JSON.".to_owned()), None).await?;
                        }
                        Some(Ok(Message::Ping(_) | Message::Pong(_))) => {}
                        Some(Err(error)) => {
                            oversize::refuse(&mut socket.0, error).await;
                            return Err(Gone);
                        }
                        Some(Ok(Message::Close(_))) | None => return Err(Gone),
                    }
                }
                done = self.underway.next() => match done {
                    Some(((command, done), _place)) => self.done(socket, command, done).await?,
                    None => return Err(Gone),
                },
                happened = self.source.next() => match happened {
                    SourceEvent::Step(step) => self.step(socket, step).await?,
                    // The running command may be the cause, and reports it itself.
                    SourceEvent::Started if !listens => self.recheck = true,
                    SourceEvent::Started => self.look_for_session(socket).await?,
                    SourceEvent::Closed => return Err(Gone),
                },
                // Restarted by every event: held frames are released only after a pause.
                () = tokio::time::sleep(HOLD), if holds => {
                    if let Source::Session(conversation) = &mut self.source {
                        let frames = conversation.translator.release();
                        let frames = conversation.unseen(frames);
                        self.tell(socket, frames).await?;
                    }
                }
                () = pulse.beat() => {
                    if !listens {
                        // Frames of the client can't be read now.
                        last_frame = Instant::now();
                    }
                    if !pulse.is_valid().await || last_frame.elapsed() > SILENCE {
                        return Err(Gone);
                    }
                    socket.write([Message::Ping(bytes::Bytes::new())]).await?;
                }
            }
        }
    }

    /// Sends `session_start`, and replays what the client missed.
    async fn greet(
        &mut self,
        socket: &mut Writer,
        session: Option<SessionId>,
        after_seq: Option<u64>,
    ) -> Result<(), Gone> {
        let found = match session {
            Some(id) => self.sessions.find(id).await.ok(),
            None => None,
        };
        let Some((record, pending)) = found else {
            let cwd = self.sessions.paths().working_directory(self.cwd.as_deref()).await;
            let cwd = cwd.map(|cwd| cwd.display().to_string()).unwrap_or_default();
            let nothing = Introduction::default();
            let start = translate::session_start(&self.name, &self.initial_settings, None, &nothing, &cwd);
            socket.say(start).await?;
            if after_seq.is_some_and(|after| after > 0) {
                socket.say(translate::reset(0)).await?;
            }
            return Ok(());
        };
        let introduction = self.introduction(record.id).await;
        let start = translate::session_start(
            &self.name,
            &record.settings,
            Some(&record),
            &introduction,
            &record.cwd,
        );
        socket.say(start).await?;
        let seen = match after_seq {
            // The client's events are from another session, or from before a restored backup.
            Some(after) if after > record.last_seq => {
                socket.say(translate::reset(record.last_seq)).await?;
                record.last_seq
            }
            Some(after) => after,
            None => record.last_seq,
        };
        self.sent_settings = Some(SettingsStatus::of(&record.settings));
        self.join(record.id, seen, &introduction).await;
        if let (Source::Session(conversation), None) = (&mut self.source, after_seq) {
            conversation.waiting = pending.iter().map(|asked| asked.id.to_string()).collect();
        }
        Ok(())
    }

    /// From now on this connection sends the events of `session` after `seen`.
    async fn join(&mut self, session: SessionId, seen: u64, introduction: &Introduction) {
        let feed = self.sessions.watch();
        // Translation begins with the prompt of a turn, so it has to start before `seen`.
        let before = Some(seen.saturating_add(1));
        let prompt = match prompt_before(&self.sessions, session, before).await {
            Ok(prompt) => prompt.unwrap_or(0),
            Err(error) => {
                tracing::warn!(%error, "can't find where a turn began");
                0
            }
        };
        self.source = Source::Session(Box::new(FollowedSession {
            follow: Follow::new(self.sessions.clone(), feed, session, prompt.saturating_sub(1)),
            translator: Translator::new(&self.name, seen, introduction),
            seen,
            waiting: HashSet::new(),
        }));
    }

    async fn introduction(&self, session: SessionId) -> Introduction {
        match self.sessions.replay(session, 0, INTRODUCTION_WITHIN).await {
            Ok(events) => Introduction::find(&events).unwrap_or_default(),
            Err(error) => {
                tracing::warn!(%error, "can't read how a session began");
                Introduction::default()
            }
        }
    }

    async fn look_for_session(&mut self, socket: &mut Writer) -> Result<(), Gone> {
        match self.sessions.named(&self.name).await {
            Ok(Some(session)) => self.join(session, 0, &Introduction::default()).await,
            Ok(None) => {}
            Err(error) => socket.refuse(error.into(), None).await?,
        }
        Ok(())
    }

    async fn step(&mut self, socket: &mut Writer, step: Step) -> Result<(), Gone> {
        let Source::Session(conversation) = &mut self.source else {
            return Ok(());
        };
        match step {
            Step::Event(event) => {
                let frames = conversation.translator.push(&event);
                let frames = conversation.unseen(frames);
                self.tell(socket, frames).await
            }
            Step::Queue(prompts) => socket.say(translate::queue(&prompts)).await,
            // The connection that changes the settings gets them with its answer.
            Step::Updated if !self.underway.has_room() => {
                self.recheck = true;
                Ok(())
            }
            Step::Updated => self.tell_settings(socket).await,
            Step::Hook(call) => socket.say(translate::hook_callback(&self.name, &call)).await,
            Step::Deleted => {
                // The name is free again: the next message starts another session.
                self.source = Source::NoSession(self.sessions.watch());
                let data = serde_json::json!({ "message": "The session was deleted.", "level": "warning" });
                socket.say(ServerMessage::system("notification", data)).await
            }
            Step::Closed => Err(Gone),
        }
    }

    async fn tell(&mut self, socket: &mut Writer, mut frames: Vec<Frame>) -> Result<(), Gone> {
        let offers = self.sessions.offers(self.source.session()).await;
        for frame in &mut frames {
            if let Some(list) = offers.as_ref().and_then(|offers| offers.commands.as_ref()) {
                translate::describe_commands(&mut frame.message, list);
            }
            if let ServerMessage::UserMessage { uuid, .. } = &mut frame.message
                && let Ok(id) = uuid.parse()
                && let Some(label) = self.labels.remove(&id)
            {
                *uuid = label;
            }
        }
        socket.send(frames).await
    }

    async fn frame(&mut self, socket: &mut Writer, text: &str) -> Result<(), Gone> {
        if let Err(wait) = self.pace.take(Instant::now()) {
            let reason = format!(
                "Too many messages: at most 60 a minute on one connection. Try again in {} s.",
                wait.as_secs() + 1
            );
            let (command, _) = parse(text, &self.name);
            return socket.refuse(Refused(Code::RateLimited, reason), command).await;
        }
        let (command, message) = parse(text, &self.name);
        let handled = match message {
            Ok(message) => self.handle(socket, message, command.clone()).await?,
            Err(refused) => Err(refused),
        };
        match handled {
            Ok(()) => Ok(()),
            Err(refused) => socket.refuse(refused, command).await,
        }
    }

    /// Executes messages that need no session, and begins the others.
    async fn handle(
        &mut self,
        socket: &mut Writer,
        message: ClientMessage,
        command: Option<CommandId>,
    ) -> Result<Result<(), Refused>, Gone> {
        let patch = match message {
            ClientMessage::UserMessage { message, uuid } => {
                return Ok(translate::prompt(message).map(|prompt| self.say(prompt, uuid, command)));
            }
            ClientMessage::PermissionResponse(response) => return Ok(self.answer(response, command)),
            ClientMessage::Interrupt => return self.interrupt(socket, command).await.map(Ok),
            ClientMessage::RegisterHooks { events } => {
                return self.register_hooks(socket, events, command).await;
            }
            ClientMessage::HookCallbackResponse { callback_id, output } => {
                return Ok(self.answer_hook(callback_id, &output, command));
            }
            ClientMessage::SetModel { model } => self.model(&model).await.map(|model| SettingsPatch {
                options: vec![OptionChange::new(options::MODEL, model)],
                ..SettingsPatch::default()
            }),
            ClientMessage::SetPermissionMode { mode } => PermissionMode::parse(&mode)
                .map(|mode| SettingsPatch {
                    options: vec![mode.change()],
                    ..SettingsPatch::default()
                })
                .ok_or_else(|| translate::unknown_mode(&mode)),
        };
        match patch {
            Ok(patch) => self.configure(socket, patch, command).await.map(Ok),
            Err(refused) => Ok(Err(refused)),
        }
    }

    fn begin(&mut self, command: Option<CommandId>, work: impl Future<Output = Outcome> + Send + 'static) {
        let place = self.underway.place(0);
        let work = async move { (command, work.await) };
        self.underway.begin(Order::Beside, place, work);
    }

    async fn done(
        &mut self,
        socket: &mut Writer,
        command: Option<CommandId>,
        done: Outcome,
    ) -> Result<(), Gone> {
        let outcome = match done {
            Outcome::Prompted(_, Ok(accepted)) => {
                let session = accepted.session;
                // Unless the session was deleted in the meantime.
                if self.source.session().is_none()
                    && let Ok((record, _)) = self.sessions.find(session).await
                {
                    self.sent_settings = Some(SettingsStatus::of(&record.settings));
                    self.join(session, 0, &Introduction::default()).await;
                }
                self.acknowledge(socket, command.clone(), accepted).await?;
                Ok(())
            }
            Outcome::Prompted(prompt, Err(error)) => {
                self.labels.remove(&prompt);
                Err(error)
            }
            Outcome::Configured(settings, Ok(())) => {
                // Sent here, changed or not; the feed's notice about it is then no news.
                self.sent_settings = Some(SettingsStatus::of(&settings));
                socket
                    .answer(translate::status(&settings), command.clone())
                    .await?;
                Ok(())
            }
            Outcome::HooksRegistered(events, Ok(())) => {
                socket.answer(hooks_registered(&events), command.clone()).await?;
                Ok(())
            }
            Outcome::Configured(_, outcome)
            | Outcome::HooksRegistered(_, outcome)
            | Outcome::Other(outcome) => outcome,
        };
        if let Err(error) = outcome {
            socket.refuse(error.into(), command).await?;
        }
        if !std::mem::take(&mut self.recheck) {
            return Ok(());
        }
        match self.source {
            Source::Session(_) => self.tell_settings(socket).await,
            Source::NoSession(_) => self.look_for_session(socket).await,
        }
    }

    /// A prompt is acknowledged by its echo when its turn begins; a duplicate by the same echo again. A client that
    /// sent a `command_id` is answered at once.
    async fn acknowledge(
        &mut self,
        socket: &mut Writer,
        command: Option<CommandId>,
        accepted: Accepted,
    ) -> Result<(), Gone> {
        let Ok((record, _)) = self.sessions.find(accepted.session).await else {
            return Ok(());
        };
        if command.is_some() {
            socket
                .answer(translate::status(&record.settings), command)
                .await?;
        }
        if !accepted.duplicate {
            return Ok(());
        }
        let began = self.sessions.replay(accepted.session, accepted.after, 1).await;
        let echo = began.ok().and_then(|events| events.into_iter().next());
        match echo.map(|event| (event.seq, event.body)) {
            Some((seq, EventBody::UserPrompt { prompt })) if prompt.id == accepted.prompt => {
                let frame = Frame {
                    message: translate::echo(&self.name, &prompt),
                    command_id: None,
                    seq: Some(seq),
                };
                self.tell(socket, vec![frame]).await
            }
            // The prompt waits, or was removed from the queue.
            _ => {
                self.labels.remove(&accepted.prompt);
                let waiting: Vec<_> = record.queue.into_iter().map(|prompt| prompt.text).collect();
                socket.say(translate::queue(&waiting)).await
            }
        }
    }

    async fn model(&self, name: &str) -> Result<Option<String>, Refused> {
        let offers = self.sessions.offers(self.source.session()).await;
        translate::model(name, offers.as_ref().map(|offers| offers.models.as_slice()))
    }

    async fn register_hooks(
        &mut self,
        socket: &mut Writer,
        events: Vec<String>,
        command: Option<CommandId>,
    ) -> Result<Result<(), Refused>, Gone> {
        let events = match translate::hook_events(events) {
            Ok(events) => events,
            Err(refused) => return Ok(Err(refused)),
        };
        if let Some(session) = self.source.session() {
            let sessions = self.sessions.clone();
            self.begin(command, async move {
                let registered = sessions.register_hooks(session, events.clone()).await;
                Outcome::HooksRegistered(events, registered)
            });
        } else {
            socket.answer(hooks_registered(&events), command).await?;
            self.hooks = events;
        }
        Ok(Ok(()))
    }

    fn answer_hook(
        &mut self,
        callback: String,
        output: &serde_json::Map<String, serde_json::Value>,
        command: Option<CommandId>,
    ) -> Result<(), Refused> {
        let unknown = || Refused(Code::RequestNotFound, "No such hook call is waiting.".to_owned());
        let session = self.source.session().ok_or_else(unknown)?;
        let output = RawJson::of(output).map_err(|error| Refused(Code::ParseError, error.to_string()))?;
        let sessions = self.sessions.clone();
        self.begin(command, async move {
            Outcome::Other(sessions.answer_hook(session, &callback, output).await)
        });
        Ok(())
    }

    /// The connection's session, if it exists and can be read.
    async fn record(&self) -> Option<SessionRecord> {
        let (record, _) = self.sessions.find(self.source.session()?).await.ok()?;
        Some(record)
    }

    /// Sends changed settings, whoever changed them.
    async fn tell_settings(&mut self, socket: &mut Writer) -> Result<(), Gone> {
        let found = self.record().await;
        let Some(record) = found else {
            return Ok(());
        };
        let now = SettingsStatus::of(&record.settings);
        if self.sent_settings.as_ref() == Some(&now) {
            return Ok(());
        }
        self.sent_settings = Some(now);
        socket.say(translate::status(&record.settings)).await
    }

    fn say(&mut self, mut prompt: NewPrompt, uuid: Option<String>, command: Option<CommandId>) {
        let chosen = uuid.as_deref().and_then(|uuid| uuid.parse().ok());
        let id = chosen.unwrap_or_else(PromptId::random);
        prompt.id = Some(id);
        // Clients may use any ids for their messages; a client then finds its own message by that id.
        if let Some(label) = uuid.filter(|uuid| *uuid != id.to_string())
            && self.labels.len() < REMEMBERED
        {
            self.labels.insert(id, label);
        }
        let sessions = self.sessions.clone();
        if let Some(session) = self.source.session() {
            self.begin(command, async move {
                Outcome::Prompted(id, sessions.prompt(session, prompt).await)
            });
        } else {
            let start = StartSession {
                prompt,
                cwd: self.cwd.clone(),
                backend: self.agent.clone(),
                settings: self.initial_settings.clone(),
                hooks: self.hooks.clone(),
                ..StartSession::default()
            };
            let name = self.name.clone();
            self.begin(command, async move {
                Outcome::Prompted(id, sessions.start_named(&name, start).await)
            });
        }
    }

    fn answer(
        &mut self,
        response: super::wire::PermissionResponse,
        command: Option<CommandId>,
    ) -> Result<(), Refused> {
        let unknown = || Refused(Code::RequestNotFound, "No such request is waiting.".to_owned());
        let session = self.source.session().ok_or_else(unknown)?;
        let request = response.request_id.parse().map_err(|_| unknown())?;
        let shown = response.shown.clone();
        let answer = translate::answer(response)?;
        let sessions = self.sessions.clone();
        self.begin(command, async move {
            let decision = DecisionRef::Request(request);
            let decided = sessions.answer_shown(session, decision, answer, shown.as_deref());
            Outcome::Other(decided.await)
        });
        Ok(())
    }

    async fn interrupt(&mut self, socket: &mut Writer, command: Option<CommandId>) -> Result<(), Gone> {
        let running = self.record().await;
        let running = running.filter(|record| record.status == SessionStatus::Running);
        let Some(session) = running.map(|record| record.id) else {
            return socket.answer(translate::interrupted(), command).await;
        };
        let sessions = self.sessions.clone();
        // The turn's end is sent to all connections.
        self.begin(
            command,
            async move { Outcome::Other(sessions.stop(session).await) },
        );
        Ok(())
    }

    async fn configure(
        &mut self,
        socket: &mut Writer,
        patch: SettingsPatch,
        command: Option<CommandId>,
    ) -> Result<(), Gone> {
        let Some(record) = self.record().await else {
            self.initial_settings = patch.applied(&self.initial_settings);
            return socket
                .answer(translate::status(&self.initial_settings), command)
                .await;
        };
        let settings = Box::new(patch.applied(&record.settings));
        let sessions = self.sessions.clone();
        self.begin(command, async move {
            let configured = sessions.configure(record.id, patch).await;
            Outcome::Configured(settings, configured)
        });
        Ok(())
    }
}

fn hooks_registered(events: &[String]) -> ServerMessage {
    ServerMessage::system("hooks_registered", serde_json::json!({ "events": events }))
}

impl Writer {
    async fn say(&mut self, message: ServerMessage) -> Result<(), Gone> {
        self.answer(message, None).await
    }

    /// Answers the message with this `command_id`.
    async fn answer(&mut self, message: ServerMessage, command_id: Option<CommandId>) -> Result<(), Gone> {
        let frame = Frame {
            message,
            command_id,
            seq: None,
        };
        self.send(vec![frame]).await
    }

    async fn refuse(
        &mut self,
        Refused(code, reason): Refused,
        command: Option<CommandId>,
    ) -> Result<(), Gone> {
        if code == Code::Forbidden {
            let (app, visitor) = (&self.1, &self.2);
            app.refusals
                .refused(&app.authenticator, visitor, "chat", None)
                .await;
        }
        self.answer(ServerMessage::error(code, reason), command).await
    }

    async fn send(&mut self, frames: Vec<Frame>) -> Result<(), Gone> {
        let mut messages = Vec::with_capacity(frames.len());
        for frame in frames {
            match serde_json::to_string(&frame) {
                Ok(text) => messages.push(Message::Text(Utf8Bytes::from(text))),
                Err(error) => tracing::error!(%error, "a frame can't be written as JSON"),
            }
        }
        self.write(messages).await
    }

    /// Written in one go: the frames of one event stay together.
    async fn write(&mut self, messages: impl IntoIterator<Item = Message>) -> Result<(), Gone> {
        let written = async {
            for message in messages {
                self.0.feed(message).await?;
            }
            self.0.flush().await
        };
        match tokio::time::timeout(STUCK_WRITE, written).await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(_)) | Err(_) => Err(Gone),
        }
    }
}
