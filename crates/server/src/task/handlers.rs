//! Starts and watches tasks.

use std::net::SocketAddr;
use std::time::Instant;

use axum::extract::{ConnectInfo, Extension, Json, Path, State};
use axum::http::header::{CONTENT_TYPE, RETRY_AFTER};
use axum::http::{HeaderMap, HeaderName, StatusCode};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use futures_util::stream;
use serde_json::json;
use tiller_core::{
    Accepted, CommandError, NewPrompt, OptionChange, SessionId, SessionRecord, Sessions, Settings,
    SettingsPatch, StartSession, title_from_prompt,
};

use super::decide::session_id;
use super::follow::{Turn, Wanted, cost_before, note_cost, turn_to_show};
use super::supervise::{Attendance, Order, supervise, was_overdue};
use super::translate::{About, Translated, Translator};
use super::wire::{Conversation, Granularity, Task, TaskEvent, TaskRequest, TaskResponse};
use crate::app::App;
use crate::auth::Visitor;
use crate::body::{Body, Refusal};
use crate::error::{ApiError, FieldProblem, Language, WrongField};
use crate::follow::{Step, ends_turn};
use crate::openapi::{BodyRefusals, ErrorBody, Refusals, ServerSentEvent};
use crate::options::{self, PermissionMode};
use crate::pulse::Pulse;
use crate::underway::whole;

const SESSION_HEADER: HeaderName = HeaderName::from_static("x-session-id");

/// Run a task and wait for its end
///
/// Nobody can be asked: requests for permission are denied. A task that ran and failed, or reached `timeout_s`, is 200
/// with `success: false`. At most 10 a minute for each address.
#[utoipa::path(
    post, operation_id = "task", path = "/api/task", tag = "task", request_body = TaskRequest,
    extensions(("x-summary-zh-CN" = json!("执行任务并等待结果")), ("x-scope" = json!("run"))),
    responses(
    (status = 200, body = TaskResponse, headers(("X-Session-Id" = String))),
    (status = 404, body = ErrorBody, description = "The session to resume does not exist."),
    Refusals, BodyRefusals,
))]
pub(super) async fn run(
    State(app): State<App>,
    Extension(visitor): Extension<Visitor>,
    ConnectInfo(address): ConnectInfo<SocketAddr>,
    headers: HeaderMap,
    Body(request): Body<TaskRequest>,
) -> Result<Response, Refusal> {
    let task = request.check()?;
    let order = Ordered {
        task,
        attendance: Attendance::Nobody,
        address,
        language: Language::of(&headers),
    };
    let mut pulse = Pulse::new(&app, &visitor);
    let mut run = match whole(begin(app, visitor, order)).await? {
        Ok(run) => run,
        Err(refusal) => return Ok(refusal.into_response()),
    };
    loop {
        let next = tokio::select! {
            biased;
            () = pulse.beat() => {
                if !pulse.is_valid().await {
                    return Err(ApiError::Unauthorized.into());
                }
                continue;
            }
            next = run.next() => next,
        };
        let (_, translated) = next.ok_or(ApiError::Internal)??;
        if let Some(response) = translated.response {
            // The key may have been revoked since the last check.
            if !pulse.is_valid().await {
                return Err(ApiError::Unauthorized.into());
            }
            return Ok(([(SESSION_HEADER, run.session_id())], Json(response)).into_response());
        }
    }
}

/// Run a task and stream its events
///
/// Server-sent events: `text`, `thinking`, `tool_use`, `tool_result`, `todos`, `ask_user_question`,
/// `permission_request`, `error`, and `complete`, which is always the last. The id of an event is its position; a
/// comment is sent after a pause. At most 10 a minute for each address.
#[utoipa::path(
    post, operation_id = "task_stream", path = "/api/task/stream", tag = "task", request_body = TaskRequest,
    extensions(("x-summary-zh-CN" = json!("执行任务并实时接收过程（SSE）")), ("x-scope" = json!("read and run"))),
    responses(
    (status = 200, content_type = "text/event-stream", body = ServerSentEvent, headers(("X-Session-Id" = String))),
    (status = 404, body = ErrorBody, description = "The session to resume does not exist."),
    Refusals, BodyRefusals,
))]
pub(super) async fn run_streamed(
    State(app): State<App>,
    Extension(visitor): Extension<Visitor>,
    ConnectInfo(address): ConnectInfo<SocketAddr>,
    headers: HeaderMap,
    Body(request): Body<TaskRequest>,
) -> Result<Response, Refusal> {
    if !visitor.viewer.scopes.read {
        return Err(ApiError::Forbidden.into());
    }
    let task = request.check()?;
    let order = Ordered {
        task,
        attendance: Attendance::Someone,
        address,
        language: Language::of(&headers),
    };
    match whole(begin(app.clone(), visitor.clone(), order)).await? {
        Ok(run) => Ok(Watched::new(&app, &visitor, run, 0).into_response()),
        Err(refusal) => Ok(refusal.into_response()),
    }
}

/// Reconnect to a task's events
///
/// From the start of the task, or after the event in the header `Last-Event-ID`, which a browser's EventSource sends by
/// itself. A client whose position is not in the log gets `reset`, and has to start again.
#[utoipa::path(
    get, operation_id = "task_watch", path = "/api/task/{session_id}/stream", tag = "task", params(
    ("session_id" = String, Path),
),
    extensions(("x-summary-zh-CN" = json!("重新观看一个任务，可从 Last-Event-ID 之后继续")), ("x-scope" = json!("read"))),
    responses(
    (status = 200, content_type = "text/event-stream", body = ServerSentEvent, headers(("X-Session-Id" = String))),
    (status = 204, description = "The client has all events."),
    (status = 404, body = ErrorBody), (status = 422, body = ErrorBody), Refusals,
))]
pub(super) async fn watch(
    State(app): State<App>,
    Extension(visitor): Extension<Visitor>,
    Path(session): Path<String>,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    if !visitor.viewer.scopes.read {
        return Err(ApiError::Forbidden);
    }
    let session = session_id(&session)?;
    let seen: Option<u64> = match headers.get("last-event-id") {
        None => None,
        Some(value) => {
            let seen = value.to_str().ok().and_then(|text| text.parse().ok());
            Some(seen.ok_or(ApiError::WrongForm)?)
        }
    };
    let sessions = app.sessions.for_viewer(visitor.viewer.clone());
    // Subscribed before anything is read, so that no event is missed between log and live feed.
    let feed = sessions.watch();
    let (record, _) = sessions.find(session).await?;
    if seen > Some(record.last_seq) {
        return Ok(reset(&record));
    }
    let Some(prompt) = turn_to_show(&sessions, session, seen).await? else {
        // Makes a browser's EventSource stop reconnecting.
        return Ok(StatusCode::NO_CONTENT.into_response());
    };
    let turn = Turn::new(sessions, feed, session, prompt.saturating_sub(1), Wanted::First);
    let run = Run::new(turn, &record, Granularity::default(), Language::of(&headers));
    Ok(Watched::new(&app, &visitor, run, seen.unwrap_or(0)).into_response())
}

/// For a client whose position is not in this session's log: it has to start again from the beginning.
fn reset(record: &SessionRecord) -> Response {
    let event = TaskEvent {
        kind: "reset",
        data: json!({ "last_seq": record.last_seq }),
    };
    let session = record.id.to_string();
    let body = event.render(&session, Some(0));
    let headers = [
        (SESSION_HEADER, session),
        (CONTENT_TYPE, "text/event-stream".to_owned()),
    ];
    (headers, body).into_response()
}

/// A task, and who ordered it.
struct Ordered {
    task: Task,
    attendance: Attendance,
    address: SocketAddr,
    language: Language,
}

/// Why no task was started.
enum Refused {
    Error(Refusal),
    /// Too many tasks: try again after so many seconds.
    TooMany(u64),
}

impl From<ApiError> for Refused {
    fn from(error: ApiError) -> Self {
        Self::Error(error.into())
    }
}

impl From<CommandError> for Refused {
    fn from(error: CommandError) -> Self {
        Self::Error(match error {
            CommandError::Option(refused) if refused.option == options::MODEL => {
                WrongField::new("model", FieldProblem::WrongForm).into()
            }
            CommandError::Backend(_) => WrongField::new("agent", FieldProblem::WrongForm).into(),
            other => ApiError::from(other).into(),
        })
    }
}

impl IntoResponse for Refused {
    fn into_response(self) -> Response {
        match self {
            Self::Error(error) => error.into_response(),
            Self::TooMany(seconds) => {
                let mut response = ApiError::RateLimited.into_response();
                response.headers_mut().insert(RETRY_AFTER, seconds.into());
                response
            }
        }
    }
}

/// Where a task runs.
enum Place {
    /// A duplicate: the task was started before.
    Begun(Accepted),
    New {
        cwd: Option<String>,
    },
    Ours(Box<SessionRecord>),
    /// A conversation that was started outside of Tiller, in this folder.
    Elsewhere {
        conversation: SessionId,
        cwd: String,
    },
}

/// Starts the task and its supervision. Runs to its end even if the client disconnects: an unsupervised task has no
/// time limit, and its requests are never answered.
async fn begin(app: App, visitor: Visitor, order: Ordered) -> Result<Run, Refused> {
    let Ordered {
        task,
        attendance,
        address,
        language,
    } = order;
    if !visitor.viewer.scopes.run {
        return Err(ApiError::Forbidden.into());
    }
    let sessions = app.sessions.for_viewer(visitor.viewer.clone());
    // A duplicate continues the first task, whatever its other fields say.
    let begun = sessions.accepted(task.prompt_id).await?;
    let place = match begun {
        Some(accepted) => Place::Begun(accepted),
        None => place(&app, &visitor, &sessions, &task).await?,
    };
    let tally = match attendance {
        Attendance::Nobody => &app.tasks.whole,
        Attendance::Someone => &app.tasks.streamed,
    };
    let now = Instant::now();
    if !tally.count(address.ip(), now) {
        let wait = tally.wait(address.ip(), now).as_secs_f64().ceil();
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "at most a minute"
        )]
        return Err(Refused::TooMany((wait as u64).max(1)));
    }
    // Subscribed before anything happens, so that no event is missed.
    let feed = sessions.watch();
    let accepted = match place {
        Place::Begun(accepted) => accepted,
        Place::New { cwd } => sessions.start(start(&task, cwd, None)).await?,
        Place::Elsewhere { conversation, cwd } => {
            // Read before the agent adds to it.
            let spent = app.history.spent(conversation.to_string()).await?;
            let spent = spent.unwrap_or(0.0);
            let start = StartSession {
                spent_before_usd: spent,
                ..start(&task, Some(cwd), Some(conversation))
            };
            let accepted = sessions.start(start).await?;
            note_cost(&sessions, accepted.session, spent).await?;
            accepted
        }
        Place::Ours(record) => {
            let begun = match task.prompt_id {
                // In a session of another key, prompt ids belong to that key.
                Some(prompt) => sessions.accepted_in(record.id, prompt).await?,
                None => None,
            };
            if let Some(accepted) = begun {
                accepted
            } else {
                sessions.configure(record.id, patch(&task)).await?;
                sessions.prompt(record.id, prompt(&task)).await?
            }
        }
    };
    let session = accepted.session;
    let (record, _) = sessions.find(session).await?;
    if !accepted.duplicate {
        let order = Order::new(accepted, task.timeout, attendance);
        supervise(&app, session, order).await?;
    }
    let key = visitor
        .viewer
        .key
        .as_deref()
        .unwrap_or("the person at the machine");
    tracing::info!(client = %address.ip(), key, %session, duplicate = accepted.duplicate, "a task was started");
    let wanted = Wanted::Prompt(accepted.prompt);
    let turn = Turn::new(sessions, feed, session, accepted.after, wanted);
    Ok(Run::new(turn, &record, task.granularity, language))
}

async fn place(app: &App, visitor: &Visitor, sessions: &Sessions, task: &Task) -> Result<Place, ApiError> {
    let paths = sessions.paths();
    let wanted = task.working_dir.as_deref();
    match task.conversation {
        Conversation::New => {
            paths
                .working_directory(wanted)
                .await
                .map_err(CommandError::from)?;
            Ok(Place::New {
                cwd: task.working_dir.clone(),
            })
        }
        Conversation::Resume(id) => {
            let place = match sessions.of_conversation(&id.to_string()).await? {
                Some(record) => Place::Ours(Box::new(record)),
                None => elsewhere(app, visitor, id).await?,
            };
            let cwd = match &place {
                Place::Ours(record) => &record.cwd,
                Place::Elsewhere { cwd, .. } => cwd,
                Place::New { .. } | Place::Begun(_) => return Ok(place),
            };
            if wanted.is_some_and(|wanted| !wanted.trim().is_empty()) {
                let wanted = paths.working_directory(wanted).await;
                if !wanted.is_ok_and(|wanted| wanted == std::path::Path::new(cwd)) {
                    return Err(ApiError::WorkingDirLocked);
                }
            }
            Ok(place)
        }
        Conversation::Newest => {
            let cwd = paths.working_directory(wanted).await;
            let cwd = cwd.map_err(CommandError::from)?;
            let cwd = cwd.to_string_lossy().into_owned();
            newest(app, visitor, sessions, cwd).await
        }
    }
}

/// A conversation that exists only as a transcript. Keys see only their own.
async fn elsewhere(app: &App, visitor: &Visitor, id: SessionId) -> Result<Place, ApiError> {
    if visitor.viewer.key.is_some() {
        return Err(ApiError::SessionNotFound);
    }
    let found = app.history.conversation(id.to_string()).await?;
    let cwd = found.ok_or(ApiError::SessionNotFound)?.folder;
    Ok(Place::Elsewhere {
        conversation: id,
        cwd,
    })
}

/// The newest conversation of a folder, whoever started it; a new one if there is none.
async fn newest(app: &App, visitor: &Visitor, sessions: &Sessions, cwd: String) -> Result<Place, ApiError> {
    // The list has the most recently changed session first. A session that never began can't continue.
    let can_go_on = |record: &SessionRecord| record.conversation.is_some() || record.expired;
    let newest = sessions.newest_in(&cwd, can_go_on).await?;
    // The CLI writes its transcript a moment after its messages, so the transcripts may not have the newest of our
    // sessions.
    let is_older = |last_active| {
        newest
            .as_ref()
            .is_none_or(|record| record.updated_at.0 < last_active)
    };
    if visitor.viewer.key.is_none()
        && let Some((id, last_active)) = app.history.newest_conversation(cwd.clone()).await?
        && is_older(last_active)
    {
        if let Some(record) = sessions.of_conversation(&id).await? {
            return Ok(Place::Ours(Box::new(record)));
        }
        if let Ok(conversation) = id.parse() {
            return Ok(Place::Elsewhere { conversation, cwd });
        }
    }
    Ok(match newest {
        Some(record) => Place::Ours(Box::new(record)),
        None => Place::New { cwd: Some(cwd) },
    })
}

fn prompt(task: &Task) -> NewPrompt {
    NewPrompt {
        id: task.prompt_id,
        ..NewPrompt::from(task.prompt.clone())
    }
}

fn start(task: &Task, cwd: Option<String>, resume: Option<SessionId>) -> StartSession {
    StartSession {
        // A program does not pay for a title that it did not ask for.
        title: title_from_prompt(&task.prompt),
        prompt: prompt(task),
        cwd,
        backend: task.agent.clone(),
        settings: patch(task).applied(&Settings::default()),
        resume,
        ..StartSession::default()
    }
}

/// A task sets its tools and its time limit; other settings may stay as the session has them.
fn patch(task: &Task) -> SettingsPatch {
    let always = [
        OptionChange::new(options::TOOLS, task.tools.clone()),
        OptionChange::new(options::MAX_TURNS, task.max_turns),
    ];
    let model = task.model.clone();
    let model = model.map(|model| OptionChange::new(options::MODEL, model));
    let mode = task.permission_mode.map(PermissionMode::change);
    SettingsPatch {
        options: always.into_iter().chain(model).chain(mode).collect(),
        ..SettingsPatch::default()
    }
}

/// A running task, as its client sees it.
struct Run {
    turn: Turn,
    about: About,
    translator: Option<Translator>,
    /// The step that was read but not returned yet: [`Self::next`] may be cancelled.
    taken: Option<Step>,
}

impl Run {
    fn new(turn: Turn, record: &SessionRecord, granularity: Granularity, language: Language) -> Self {
        let about = About {
            session_id: record.id.to_string(),
            cwd: record.cwd.clone(),
            cost_before: 0.0,
            granularity,
            language,
        };
        Self {
            turn,
            about,
            translator: None,
            taken: None,
        }
    }

    fn session_id(&self) -> String {
        self.about.session_id.clone()
    }

    /// The next event's `seq` and its translation. `None` when the server stops.
    async fn next(&mut self) -> Option<Result<(u64, Translated), ApiError>> {
        if self.taken.is_none() {
            self.taken = Some(self.turn.next().await);
        }
        let session = self.turn.session();
        let (translator, began) = match (&mut self.translator, self.turn.began) {
            (Some(translator), Some(began)) => (translator, began),
            (empty, began) => {
                let began = began.unwrap_or(0);
                match cost_before(self.turn.sessions(), session, began).await {
                    Ok(cost) => self.about.cost_before = cost,
                    Err(CommandError::UnknownSession) => {}
                    Err(error) => return Some(Err(error.into())),
                }
                (empty.insert(Translator::new(self.about.clone())), began)
            }
        };
        // Only the end needs the reason. Read before the step is taken, as above.
        let overdue = match &self.taken {
            Some(Step::Event(event)) if ends_turn(event) => {
                match was_overdue(self.turn.sessions(), session, began).await {
                    Ok(overdue) => overdue,
                    Err(CommandError::UnknownSession) => false,
                    Err(error) => return Some(Err(error.into())),
                }
            }
            _ => false,
        };
        match self.taken.take()? {
            Step::Event(event) => Some(Ok((event.seq, translator.push(&event, overdue)))),
            Step::Deleted => Some(Ok((0, translator.abandon(ApiError::SessionNotFound)))),
            Step::Queue(_) | Step::Updated | Step::Hook(_) => Some(Ok((0, Translated::default()))),
            Step::Closed => None,
        }
    }
}

/// A task as server-sent events.
struct Watched {
    pulse: Pulse,
    run: Run,
    /// The client has everything up to this event.
    seen: u64,
    finished: bool,
}

impl Watched {
    fn new(app: &App, visitor: &Visitor, run: Run, seen: u64) -> Self {
        Self {
            pulse: Pulse::new(app, visitor),
            run,
            seen,
            finished: false,
        }
    }

    /// The next piece to write; nothing is read ahead of a slow client.
    async fn next(&mut self) -> Option<String> {
        if self.finished {
            return None;
        }
        loop {
            tokio::select! {
                biased;
                () = self.pulse.beat() => {
                    if !self.pulse.is_valid().await {
                        return None;
                    }
                    if let Some(sign) = self.pulse.keep_alive_comment() {
                        return Some(sign);
                    }
                }
                next = self.run.next() => {
                    // An error ends the stream without `complete`: the client reconnects and continues.
                    let (seq, translated) = next?.ok()?;
                    self.finished = translated.response.is_some();
                    // The key may have been revoked since the last check; that also ends its task.
                    if self.finished && !self.pulse.is_valid().await {
                        return None;
                    }
                    let wanted = seq > self.seen || seq == 0;
                    if !translated.events.is_empty() && wanted {
                        self.pulse.sent();
                        return Some(self.render(seq, translated));
                    }
                    if self.finished {
                        return None;
                    }
                }
            }
        }
    }

    fn render(&self, seq: u64, translated: Translated) -> String {
        let last = translated.events.len() - 1;
        let events = translated.events.into_iter().enumerate();
        let session = self.run.session_id();
        events
            .map(|(index, event)| event.render(&session, (index == last && seq > 0).then_some(seq)))
            .collect()
    }
}

impl IntoResponse for Watched {
    fn into_response(self) -> Response {
        let headers = [
            (SESSION_HEADER, self.run.session_id()),
            (CONTENT_TYPE, "text/event-stream".to_owned()),
            // Otherwise some proxies buffer events.
            (HeaderName::from_static("x-accel-buffering"), "no".to_owned()),
        ];
        let events = stream::unfold(self, |mut watched| async move {
            let written = watched.next().await?;
            Some((Ok::<_, std::convert::Infallible>(Bytes::from(written)), watched))
        });
        (headers, axum::body::Body::from_stream(events)).into_response()
    }
}
