//! One connection to the chat API: a loop that reads messages, hears its session, and writes frames. What is asked of the
//! session is done beside it, one after the other: the next message is read when the one before is done.

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

/// Nothing heard for this long, not even an answer to a ping: the other side is gone.
const SILENCE: Duration = Duration::from_mins(1);

/// One write that takes this long means that the other side does not read.
const STUCK_WRITE: Duration = Duration::from_secs(30);

/// How long a tool call is kept back in case that the agent asks for it first. It asks within a few milliseconds, but the
/// machine may have much to do; a call that runs for less than this is told with its result.
const HOLD: Duration = Duration::from_secs(1);

/// The agent introduces itself among the first events of a session.
const INTRODUCTION_WITHIN: u32 = 64;

/// What a client calls its session if it does not say.
const DEFAULT_NAME: &str = "default";

/// How many prompts of this connection are remembered under the client's own names for them, until their events come.
const REMEMBERED: usize = 1024;

#[derive(Deserialize)]
pub(crate) struct Options {
    session_id: Option<String>,
    cwd: Option<String>,
    /// The agent of a session that is begun here.
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
    // Taken before anything is read, so that nothing falls between log and live.
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
        wishes: Settings::default(),
        heard: Heard::Nothing(feed),
        hooks: Vec::new(),
        told: None,
        pace: Pace::default(),
        labels: HashMap::new(),
        underway: Underway::new(1),
        left_out: false,
    };
    Ok(oversize::limited(upgrade).on_upgrade(async move |socket| {
        let mut socket = Writer(socket);
        if let Err(Gone) = connection
            .run(&mut socket, &app, &visitor, session, options.after_seq)
            .await
        {
            tracing::debug!("a chat client went away");
        }
        // Everything else is let go of first: a feed that nobody reads keeps what it has not read.
        drop(socket);
        let Connection { underway, .. } = connection;
        underway.finish().await;
    }))
}

/// The other side is gone, or must go.
struct Gone;

struct Writer(WebSocket);

struct Connection {
    sessions: Sessions,
    /// What the client calls the session.
    name: String,
    /// Where the session is to begin.
    cwd: Option<String>,
    /// The agent of a session that is begun here.
    agent: Option<String>,
    /// What it is to begin with.
    wishes: Settings,
    heard: Heard,
    /// What it is to be called back for from its beginning.
    hooks: Vec<String>,
    /// The settings that the client knows of.
    told: Option<Told>,
    pace: Pace,
    /// What the client calls prompts of its own whose events have not come, where that is no UUID.
    labels: HashMap<PromptId, String>,
    /// At most one: each depends on what became of the one before.
    underway: Underway<(Option<CommandId>, Done)>,
    /// Something has happened that is looked at when that is done, as it may be its doing.
    left_out: bool,
}

/// What was done beside the loop.
enum Done {
    /// This prompt was accepted, or not.
    Prompted(PromptId, Result<Accepted, CommandError>),
    Configured(Box<Settings>, Result<(), CommandError>),
    HooksRegistered(Vec<String>, Result<(), CommandError>),
    /// Nothing is told that the session does not tell.
    Other(Result<(), CommandError>),
}

/// What `status` tells of a session's settings.
#[derive(Eq, PartialEq)]
struct Told {
    model: Option<String>,
    permission_mode: PermissionMode,
}

impl Told {
    fn of(settings: &Settings) -> Self {
        Self {
            model: options::text(&settings.options, options::MODEL),
            permission_mode: PermissionMode::of(&settings.options),
        }
    }
}

enum Heard {
    /// There is no session of that name yet; someone else may begin it.
    Nothing(LiveFeed),
    Session(Box<Conversation>),
}

struct Conversation {
    follow: Follow,
    translator: Translator,
    /// The client has everything up to here.
    seen: u64,
    /// But not these requests: what waits for someone must not be missed by someone who comes later.
    waiting: HashSet<String>,
}

impl Conversation {
    /// Leaves out what the client has.
    fn unseen(&mut self, frames: Vec<Frame>) -> Vec<Frame> {
        let is_new = |frame: &Frame| match &frame.message {
            ServerMessage::PermissionRequest { request_id, .. } if self.waiting.remove(request_id) => true,
            _ => frame.seq > Some(self.seen),
        };
        frames.into_iter().filter(is_new).collect()
    }
}

enum Happened {
    Step(Step),
    /// A session began that may be ours.
    Begun,
    Closed,
}

impl Heard {
    async fn next(&mut self) -> Happened {
        match self {
            Self::Session(conversation) => Happened::Step(conversation.follow.next().await),
            Self::Nothing(feed) => loop {
                match feed.next().await {
                    None => return Happened::Closed,
                    Some(Ok(Notice::Event(event))) if event.seq == 1 => return Happened::Begun,
                    Some(Err(_lagged)) => return Happened::Begun,
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
            Self::Nothing(_) => None,
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
        let mut last_heard = Instant::now();
        loop {
            let holds = self.heard.holds();
            let listens = self.underway.has_room();
            tokio::select! {
                frame = oversize::receive(&mut socket.0, visitor), if listens => {
                    last_heard = Instant::now();
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
                happened = self.heard.next() => match happened {
                    Happened::Step(step) => self.step(socket, step).await?,
                    // It may be what is under way, and that tells.
                    Happened::Begun if !listens => self.left_out = true,
                    Happened::Begun => self.look_for_session(socket).await?,
                    Happened::Closed => return Err(Gone),
                },
                // Begins anew with everything that happens: only quiet releases.
                () = tokio::time::sleep(HOLD), if holds => {
                    if let Heard::Session(conversation) = &mut self.heard {
                        let frames = conversation.translator.release();
                        let frames = conversation.unseen(frames);
                        self.tell(socket, frames).await?;
                    }
                }
                () = pulse.beat() => {
                    if !listens {
                        // What it says can't be heard now.
                        last_heard = Instant::now();
                    }
                    if !pulse.is_welcome().await || last_heard.elapsed() > SILENCE {
                        return Err(Gone);
                    }
                    socket.write([Message::Ping(bytes::Bytes::new())]).await?;
                }
            }
        }
    }

    /// `session_start`, and where the client left off.
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
            let start = translate::session_start(&self.name, &self.wishes, None, &nothing, &cwd);
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
            // It knows another session than this one, or one that was put back from an older copy.
            Some(after) if after > record.last_seq => {
                socket.say(translate::reset(record.last_seq)).await?;
                record.last_seq
            }
            Some(after) => after,
            None => record.last_seq,
        };
        self.told = Some(Told::of(&record.settings));
        self.join(record.id, seen, &introduction).await;
        if let (Heard::Session(conversation), None) = (&mut self.heard, after_seq) {
            conversation.waiting = pending.iter().map(|asked| asked.id.to_string()).collect();
        }
        Ok(())
    }

    /// From now on this connection tells what happens in `session` after `seen`.
    async fn join(&mut self, session: SessionId, seen: u64, introduction: &Introduction) {
        let feed = self.sessions.watch();
        // Translation begins with the prompt of a turn: it has to know what came before.
        let before = Some(seen.saturating_add(1));
        let prompt = match prompt_before(&self.sessions, session, before).await {
            Ok(prompt) => prompt.unwrap_or(0),
            Err(error) => {
                tracing::warn!(%error, "can't find where a turn began");
                0
            }
        };
        self.heard = Heard::Session(Box::new(Conversation {
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
        let Heard::Session(conversation) = &mut self.heard else {
            return Ok(());
        };
        match step {
            Step::Event(event) => {
                let frames = conversation.translator.push(&event);
                let frames = conversation.unseen(frames);
                self.tell(socket, frames).await
            }
            Step::Queue(prompts) => socket.say(translate::queue(&prompts)).await,
            // Whoever changes them is told with the answer.
            Step::Updated if !self.underway.has_room() => {
                self.left_out = true;
                Ok(())
            }
            Step::Updated => self.tell_settings(socket).await,
            Step::Hook(call) => socket.say(translate::hook_callback(&self.name, &call)).await,
            Step::Deleted => {
                // The name is free again: the next message begins another session.
                self.heard = Heard::Nothing(self.sessions.watch());
                let data = serde_json::json!({ "message": "The session was deleted.", "level": "warning" });
                socket.say(ServerMessage::system("notification", data)).await
            }
            Step::Closed => Err(Gone),
        }
    }

    async fn tell(&mut self, socket: &mut Writer, mut frames: Vec<Frame>) -> Result<(), Gone> {
        let offers = self.sessions.offers(self.heard.session()).await;
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
                "At most 60 messages a minute are taken on a connection. Try again in {} s.",
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

    /// Does what needs no session, and begins what does.
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

    fn begin(&mut self, command: Option<CommandId>, work: impl Future<Output = Done> + Send + 'static) {
        let place = self.underway.place(0);
        let work = async move { (command, work.await) };
        self.underway.begin(Order::Beside, place, work);
    }

    async fn done(
        &mut self,
        socket: &mut Writer,
        command: Option<CommandId>,
        done: Done,
    ) -> Result<(), Gone> {
        let outcome = match done {
            Done::Prompted(_, Ok(accepted)) => {
                let session = accepted.session;
                // Unless it was deleted meanwhile.
                if self.heard.session().is_none()
                    && let Ok((record, _)) = self.sessions.find(session).await
                {
                    self.told = Some(Told::of(&record.settings));
                    self.join(session, 0, &Introduction::default()).await;
                }
                self.acknowledge(socket, command.clone(), accepted).await?;
                Ok(())
            }
            Done::Prompted(prompt, Err(error)) => {
                self.labels.remove(&prompt);
                Err(error)
            }
            Done::Configured(settings, Ok(())) => {
                // Told here, changed or not; the feed's word on it is no news then.
                self.told = Some(Told::of(&settings));
                socket
                    .answer(translate::status(&settings), command.clone())
                    .await?;
                Ok(())
            }
            Done::HooksRegistered(events, Ok(())) => {
                socket.answer(hooks_registered(&events), command.clone()).await?;
                Ok(())
            }
            Done::Configured(_, outcome) | Done::HooksRegistered(_, outcome) | Done::Other(outcome) => {
                outcome
            }
        };
        if let Err(error) = outcome {
            socket.refuse(error.into(), command).await?;
        }
        if !std::mem::take(&mut self.left_out) {
            return Ok(());
        }
        match self.heard {
            Heard::Session(_) => self.tell_settings(socket).await,
            Heard::Nothing(_) => self.look_for_session(socket).await,
        }
    }

    /// A prompt is acknowledged by its echo, when its turn comes; one that was accepted before by the same echo again. A
    /// client that gave its message an id is told at once.
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
            // It waits, or was taken out of the queue.
            _ => {
                self.labels.remove(&accepted.prompt);
                let waiting: Vec<_> = record.queue.into_iter().map(|prompt| prompt.text).collect();
                socket.say(translate::queue(&waiting)).await
            }
        }
    }

    async fn model(&self, name: &str) -> Result<Option<String>, Refused> {
        let offers = self.sessions.offers(self.heard.session()).await;
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
        if let Some(session) = self.heard.session() {
            let sessions = self.sessions.clone();
            self.begin(command, async move {
                let registered = sessions.register_hooks(session, events.clone()).await;
                Done::HooksRegistered(events, registered)
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
        let unknown = || Refused(Code::RequestNotFound, "No such callback is waiting.".to_owned());
        let session = self.heard.session().ok_or_else(unknown)?;
        let output = RawJson::of(output).map_err(|error| Refused(Code::ParseError, error.to_string()))?;
        let sessions = self.sessions.clone();
        self.begin(command, async move {
            Done::Other(sessions.answer_hook(session, &callback, output).await)
        });
        Ok(())
    }

    /// The connection's session, if it has begun and can be read.
    async fn record(&self) -> Option<SessionRecord> {
        let (record, _) = self.sessions.find(self.heard.session()?).await.ok()?;
        Some(record)
    }

    /// Tells of other settings, whoever changed them.
    async fn tell_settings(&mut self, socket: &mut Writer) -> Result<(), Gone> {
        let found = self.record().await;
        let Some(record) = found else {
            return Ok(());
        };
        let now = Told::of(&record.settings);
        if self.told.as_ref() == Some(&now) {
            return Ok(());
        }
        self.told = Some(now);
        socket.say(translate::status(&record.settings)).await
    }

    fn say(&mut self, mut prompt: NewPrompt, uuid: Option<String>, command: Option<CommandId>) {
        let chosen = uuid.as_deref().and_then(|uuid| uuid.parse().ok());
        let id = chosen.unwrap_or_else(PromptId::random);
        prompt.id = Some(id);
        // A client may call its messages as it likes; then it finds its own by that name.
        if let Some(label) = uuid.filter(|uuid| *uuid != id.to_string())
            && self.labels.len() < REMEMBERED
        {
            self.labels.insert(id, label);
        }
        let sessions = self.sessions.clone();
        if let Some(session) = self.heard.session() {
            self.begin(command, async move {
                Done::Prompted(id, sessions.prompt(session, prompt).await)
            });
        } else {
            let start = StartSession {
                prompt,
                cwd: self.cwd.clone(),
                backend: self.agent.clone(),
                settings: self.wishes.clone(),
                hooks: self.hooks.clone(),
                ..StartSession::default()
            };
            let name = self.name.clone();
            self.begin(command, async move {
                Done::Prompted(id, sessions.start_named(&name, start).await)
            });
        }
    }

    fn answer(
        &mut self,
        response: super::wire::PermissionResponse,
        command: Option<CommandId>,
    ) -> Result<(), Refused> {
        let unknown = || Refused(Code::RequestNotFound, "No such request is waiting.".to_owned());
        let session = self.heard.session().ok_or_else(unknown)?;
        let request = response.request_id.parse().map_err(|_| unknown())?;
        let shown = response.shown.clone();
        let answer = translate::answer(response)?;
        let sessions = self.sessions.clone();
        self.begin(command, async move {
            let decision = DecisionRef::Request(request);
            let decided = sessions.answer_shown(session, decision, answer, shown.as_deref());
            Done::Other(decided.await)
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
        // Its end tells everyone.
        self.begin(command, async move { Done::Other(sessions.stop(session).await) });
        Ok(())
    }

    async fn configure(
        &mut self,
        socket: &mut Writer,
        patch: SettingsPatch,
        command: Option<CommandId>,
    ) -> Result<(), Gone> {
        let Some(record) = self.record().await else {
            self.wishes = patch.applied(&self.wishes);
            return socket.answer(translate::status(&self.wishes), command).await;
        };
        let settings = Box::new(patch.applied(&record.settings));
        let sessions = self.sessions.clone();
        self.begin(command, async move {
            let configured = sessions.configure(record.id, patch).await;
            Done::Configured(settings, configured)
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

    /// Answers the message that the client calls `command_id`.
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

    /// All of it in one go: frames of one event are not torn apart.
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
