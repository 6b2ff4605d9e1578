//! One connection to the event API: a loop that reads frames, forwards the live feed, and writes frames. It waits for
//! nothing else: commands and reads of logs run beside it.

use std::collections::{HashMap, HashSet};
use std::future::poll_fn;
use std::time::Duration;

use axum::extract::ws::rejection::WebSocketUpgradeRejection;
use axum::extract::ws::{Message, Utf8Bytes, WebSocket, WebSocketUpgrade};
use axum::extract::{Extension, Query, State};
use axum::response::{IntoResponse, Response};
use futures_util::{FutureExt, SinkExt};
use serde::Deserialize;
use tiller_core::credentials::Scopes;
use tiller_core::{CommandError, Event, FeedPosition, HistoryPage, LiveFeed, RequestId, SessionId, Sessions};
use tokio::sync::{OwnedSemaphorePermit, broadcast, watch};
use tokio::time::Instant;

use super::causes::Causes;
use super::commands::credentials::CredentialCreated;
use super::commands::delete::SessionDeleted;
use super::commands::list;
use super::commands::statistics::MachineLoad;
use super::parse::{Incoming, NotUnderstood, parse};
use super::protocol::{CommandId, Frame};
use super::reading::{Read, Reading};
use super::request::{Context, Handled, Origin, Purpose, Refused, Reply, Request};
use super::table::ServerEvent;
use super::translate;
use super::wire::RunnerError;
use crate::announcements::NewCredential;
use crate::app::App;
use crate::auth::Visitor;
use crate::error::{ApiError, ErrorCode, shortened};
use crate::openapi::{ErrorBody, Refusals};
use crate::oversize;
use crate::pulse::Pulse;
use crate::statistics::Load;
use crate::underway::{Order, Place, Underway};

/// After this time without any frame, not even a pong, the client counts as gone.
const SILENCE: Duration = Duration::from_mins(1);

/// A write that takes this long means that the client does not read.
const STUCK_WRITE: Duration = Duration::from_secs(30);

/// How many commands of a client may run at once. A page sends a few for each session that it shows; further frames
/// stay in the socket until a command is done.
const AT_ONCE: usize = 64;

#[derive(Deserialize)]
pub(crate) struct Options {
    only: Option<String>,
}

/// The event API: a WebSocket for all sessions
#[utoipa::path(
    get, operation_id = "events", path = "/ws/events", tag = "sessions", params(
    ("only" = Option<String>, Query, description = "`subscribed`: receive only subscribed sessions."),
),
    extensions(("x-summary-zh-CN" = json!("事件 API：一条 WebSocket 管理所有会话")), ("x-scope" = json!("read or approve"))),
    responses(
    (status = 101, description = "The WebSocket is open."),
    (status = 400, body = ErrorBody, description = "Not a WebSocket."), Refusals,
))]
pub(crate) async fn upgrade(
    State(app): State<App>,
    Extension(visitor): Extension<Visitor>,
    Query(options): Query<Options>,
    upgrade: Result<WebSocketUpgrade, WebSocketUpgradeRejection>,
) -> Response {
    let Ok(upgrade) = upgrade else {
        return ApiError::NotAWebSocket.into_response();
    };
    // Answering decisions needs to see them.
    if !visitor.viewer.scopes.read && !visitor.viewer.scopes.approve {
        return ApiError::Forbidden.into_response();
    }
    let receives_all = options.only.as_deref() != Some("subscribed");
    oversize::limited(upgrade).on_upgrade(async move |socket| {
        let sessions = app.sessions.for_viewer(visitor.viewer.clone());
        // Subscribed before anything is read, so that no event is missed between log and live feed.
        let feed = sessions.watch();
        let mut connection = Connection {
            socket,
            known: receives_all.then(|| sessions.feed_position()),
            sessions,
            scopes: visitor.viewer.scopes,
            feed,
            delivered: HashMap::new(),
            readings: HashMap::new(),
            deleting: HashSet::new(),
            replayed: HashMap::new(),
            causes: Causes::default(),
            underway: Underway::new(AT_ONCE),
            statistics: None,
            // Others are not told who else gets in.
            announcements: visitor.is_person().then(|| app.announcements.hear()),
            visitor: visitor.clone(),
            app,
        };
        if let Err(Gone) = connection.run(&visitor).await {
            tracing::debug!("a client disconnected");
        }
        // Everything else is dropped first: a feed that is not read keeps its unread events.
        let Connection { underway, .. } = connection;
        underway.finish().await;
    })
}

/// The client is gone or must be disconnected.
pub(super) struct Gone;

/// The outcome of work beside the loop.
pub(super) enum Done {
    Command {
        origin: Origin,
        purpose: Purpose,
        outcome: Result<Reply, Refused>,
    },
    /// The session's earlier commands are done; now this read begins.
    Turn(SessionId, Read, Origin),
    Page(SessionId, u64, Result<Vec<Event>, CommandError>),
    History(
        SessionId,
        Box<Result<HistoryPage, CommandError>>,
        Option<OwnedSemaphorePermit>,
        Origin,
    ),
}

pub(super) struct Connection {
    pub(super) app: App,
    socket: WebSocket,
    /// With the rights of this connection's client.
    pub(super) sessions: Sessions,
    /// The scopes that are compared with the table's.
    scopes: Scopes,
    pub(super) feed: LiveFeed,
    /// For a client that receives all sessions: the position of the feed when it connected or was last reset.
    pub(super) known: Option<FeedPosition>,
    /// The last `seq` that was sent of each subscribed session.
    pub(super) delivered: HashMap<SessionId, u64>,
    /// The reads in progress, which delay other notices of their sessions.
    pub(super) readings: HashMap<SessionId, Reading>,
    /// Sessions that this client asked to delete, until it was told that they are.
    pub(super) deleting: HashSet<SessionId>,
    /// The decisions that a replay in progress has sent.
    pub(super) replayed: HashMap<SessionId, HashSet<RequestId>>,
    pub(super) causes: Causes,
    pub(super) underway: Underway<Done>,
    /// Set once the client has subscribed to statistics.
    statistics: Option<watch::Receiver<Option<Load>>>,
    announcements: Option<broadcast::Receiver<NewCredential>>,
    visitor: Visitor,
}

impl Connection {
    async fn run(&mut self, visitor: &Visitor) -> Result<(), Gone> {
        let mut pulse = Pulse::new(&self.app, visitor);
        let mut last_frame = Instant::now();
        loop {
            let listens = self.underway.has_room();
            tokio::select! {
                frame = oversize::receive(&mut self.socket, visitor), if listens => {
                    last_frame = Instant::now();
                    match frame {
                        Some(Ok(Message::Text(text))) if oversize::is_too_long(&text) => {
                            self.not_understood(oversize::TOO_LONG.into()).await?;
                        }
                        Some(Ok(Message::Text(text))) => self.frame(&text).await?,
                        Some(Ok(Message::Binary(_))) => self.not_understood("Send text frames with JSON.".into()).await?,
                        Some(Ok(Message::Ping(_) | Message::Pong(_))) => {}
                        Some(Err(error)) => {
                            oversize::refuse(&mut self.socket, error).await;
                            return Err(Gone);
                        }
                        Some(Ok(Message::Close(_))) | None => return Err(Gone),
                    }
                }
                done = self.underway.next() => match done {
                    Some((done, place)) => self.done(done, place).await?,
                    None => return Err(Gone),
                },
                notice = self.feed.next() => match notice {
                    Some(heard) => self.forward(heard).await?,
                    None => return Err(Gone),
                },
                load = next_load(&mut self.statistics) => {
                    self.send(MachineLoad::from(load)).await?;
                }
                new = next_announcement(&mut self.announcements) => {
                    if let Some(news) = CredentialCreated::for_visitor(new, &self.visitor) {
                        self.send(news).await?;
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
                    self.write(Message::Ping(bytes::Bytes::new())).await?;
                }
            }
            self.flush().await?;
        }
    }

    pub(super) async fn flush(&mut self) -> Result<(), Gone> {
        in_time(self.socket.flush()).await
    }

    async fn frame(&mut self, text: &str) -> Result<(), Gone> {
        let place = self.underway.place(text.len());
        let Incoming { command, event } = match parse(text) {
            Ok(incoming) => incoming,
            Err(wrong) => return self.not_understood(wrong).await,
        };
        let origin = Origin {
            command,
            session: event.session().map(|session| shortened(session).to_owned()),
            row: event.row(),
        };
        if !origin.row.scope.is_in(self.scopes) {
            return self.refuse(&origin, CommandError::Forbidden.into()).await;
        }
        let request = Request {
            origin: origin.clone(),
            place,
        };
        match event.dispatch(self, request) {
            Handled::Underway => Ok(()),
            Handled::Answered(reply) => self.reply(&origin, reply).await,
            Handled::Refused(refused) => self.refuse(&origin, refused).await,
        }
    }

    /// The context for the handler of a frame.
    pub(super) fn context(&mut self, origin: &Origin) -> Context {
        let sessions = match &origin.command {
            Some(command) => self.sessions.caused_by(self.causes.add(command.clone())),
            None => self.sessions.clone(),
        };
        Context {
            app: self.app.clone(),
            sessions,
        }
    }

    /// Runs a handler beside the loop.
    pub(super) fn begin(
        &mut self,
        order: Order,
        request: Request,
        work: impl Future<Output = Result<Reply, Refused>> + Send + 'static,
    ) {
        self.begin_with(order, request, Purpose::Command, work);
    }

    pub(super) fn begin_with(
        &mut self,
        order: Order,
        request: Request,
        purpose: Purpose,
        work: impl Future<Output = Result<Reply, Refused>> + Send + 'static,
    ) {
        if let Purpose::Delete(session) = purpose {
            self.deleting.insert(session);
        }
        let Request { origin, place } = request;
        self.underway.begin(order, place, async move {
            let outcome = work.await;
            Done::Command {
                origin,
                purpose,
                outcome,
            }
        });
    }

    /// Holds back the notices of a session that is being started, until its start was answered.
    pub(super) fn hold_back(&mut self, new: SessionId) {
        if self.receives_all() {
            self.readings.insert(new, Reading::of_starting_session());
        }
    }

    /// Whether a session may be asked one more question.
    pub(super) fn may_ask(&self, session: SessionId) -> bool {
        self.underway.may_ask(session)
    }

    pub(super) fn watch_statistics(&mut self) {
        self.statistics = Some(self.app.statistics.watch());
    }

    async fn done(&mut self, done: Done, place: Place) -> Result<(), Gone> {
        match done {
            Done::Command {
                origin,
                purpose,
                outcome,
            } => self.executed(&origin, purpose, outcome).await,
            Done::Turn(session, read, origin) => self.read(session, read, Request { origin, place }).await,
            Done::Page(session, after, page) => self.page(session, after, page).await,
            Done::History(session, page, turn, origin) => {
                self.history_page(session, *page, turn, &origin).await
            }
        }
    }

    async fn executed(
        &mut self,
        origin: &Origin,
        purpose: Purpose,
        outcome: Result<Reply, Refused>,
    ) -> Result<(), Gone> {
        let succeeded = outcome.is_ok();
        match (purpose, outcome) {
            (Purpose::Delete(session), Ok(Reply::Deleted(_)))
                // The feed reports it to all clients, this one included, unless it has not subscribed to the session.
                if !self.deleting.remove(&session) || self.receives(session) => {}
            (_, Ok(reply)) => self.reply(origin, reply).await?,
            (Purpose::Start(new), Err(Refused::Command(error))) => self.refuse_start(origin, new, error).await?,
            (_, Err(refused)) => self.refuse(origin, refused).await?,
        }
        match purpose {
            Purpose::Command => Ok(()),
            Purpose::Delete(session) => {
                self.deleting.remove(&session);
                Ok(())
            }
            Purpose::Start(session) => {
                match self.readings.get_mut(&session) {
                    Some(reading) if succeeded => reading.finished(),
                    _ => drop(self.readings.remove(&session)),
                }
                self.continue_reading(session).await
            }
        }
    }

    async fn reply(&mut self, origin: &Origin, reply: Reply) -> Result<(), Gone> {
        match reply {
            Reply::Nothing => Ok(()),
            Reply::Event(event) => self.answer(origin, &event).await,
            Reply::Entry(session) => match list::entry(&self.sessions, session).await {
                Some(entry) => self.answer(origin, &entry.into()).await,
                // Deleted in the meantime; the next notice says so.
                None => Ok(()),
            },
            Reply::Duplicate(answer, session) => {
                if let Some(answer) = answer {
                    self.answer(origin, &answer).await?;
                }
                match self.sessions.find(session).await {
                    Ok((record, _)) => {
                        self.answer(origin, &translate::current_status(&record).into())
                            .await
                    }
                    // Deleted in the meantime; the next notice says so.
                    Err(_) => Ok(()),
                }
            }
            Reply::Sessions(page) => {
                let listed = list::listed(&self.sessions, page);
                self.answer(origin, &listed.into()).await
            }
            Reply::Deleted(session_id) => self.answer(origin, &SessionDeleted { session_id }.into()).await,
        }
    }

    /// Sends the answer to a frame, with the frame's `commandId`.
    pub(super) async fn answer(&mut self, origin: &Origin, event: &ServerEvent) -> Result<(), Gone> {
        debug_assert!(
            origin.may_get(event.kind()),
            "the table does not list {} as an answer to {}",
            event.kind().name(),
            origin.row.name
        );
        let command = origin.command.as_ref();
        self.send_text(Frame { event, command }.text()).await
    }

    /// Sends the client the reason of a refusal, with the frame's `commandId`.
    pub(super) async fn refuse(&mut self, origin: &Origin, refused: Refused) -> Result<(), Gone> {
        let session = origin.session.clone();
        let error = match refused {
            Refused::Command(error) => {
                if matches!(
                    ErrorCode::from(&error),
                    ErrorCode::Forbidden | ErrorCode::NotAsShown
                ) {
                    let id = session.as_deref().and_then(|session| session.parse().ok());
                    let (refusals, authenticator) = (&self.app.refusals, &self.app.authenticator);
                    let what = origin.row.name;
                    refusals.refused(authenticator, &self.visitor, what, id).await;
                }
                translate::refusal(&error, session)
            }
            Refused::Invalid(reason) => invalid(&reason, session),
        };
        self.answer(origin, &error.into()).await
    }

    /// A client of a refused start waits for the status of a session, so it gets one for an id that is not stored.
    async fn refuse_start(
        &mut self,
        origin: &Origin,
        new: SessionId,
        error: CommandError,
    ) -> Result<(), Gone> {
        let session_id = new.to_string();
        self.answer(origin, &translate::refused_start(new, &error).into())
            .await?;
        self.refuse(origin, error.into()).await?;
        self.answer(origin, &SessionDeleted { session_id }.into()).await
    }

    async fn not_understood(&mut self, wrong: NotUnderstood) -> Result<(), Gone> {
        let session = wrong.session.map(|session| shortened(&session).to_owned());
        // A client without the scope is told that, and not how to write the frame.
        if let Some(row) = wrong.row.filter(|row| !row.scope.is_in(self.scopes)) {
            let origin = Origin {
                command: wrong.command,
                session,
                row,
            };
            return self.refuse(&origin, CommandError::Forbidden.into()).await;
        }
        let event = &invalid(&wrong.reason, session).into();
        let command = wrong.command.as_ref();
        self.send_text(Frame { event, command }.text()).await
    }

    /// Sends an event that no frame asked for.
    pub(super) async fn send(&mut self, event: impl Into<ServerEvent>) -> Result<(), Gone> {
        self.send_as(event, None).await
    }

    /// Sends an event with the id of the command that caused it, if any.
    pub(super) async fn send_as(
        &mut self,
        event: impl Into<ServerEvent>,
        command: Option<&CommandId>,
    ) -> Result<(), Gone> {
        let event = &event.into();
        self.send_text(Frame { event, command }.text()).await
    }

    pub(super) async fn send_event(&mut self, event: &Event) -> Result<(), Gone> {
        let command = self.causes.take(event);
        self.send_text(translate::frame(event, command.as_ref())).await
    }

    pub(super) async fn send_text(&mut self, text: Result<String, serde_json::Error>) -> Result<(), Gone> {
        match text {
            Ok(text) => self.write(Message::Text(Utf8Bytes::from(text))).await,
            Err(error) => {
                tracing::error!(%error, "an event can't be written as JSON");
                Ok(())
            }
        }
    }

    /// Sent with the next flush, or when there is enough of it.
    async fn write(&mut self, message: Message) -> Result<(), Gone> {
        // There is nearly always room, and then no timer is needed.
        let room = match poll_fn(|cx| self.socket.poll_ready_unpin(cx)).now_or_never() {
            Some(room) => room.map_err(|_| Gone),
            None => in_time(poll_fn(|cx| self.socket.poll_ready_unpin(cx))).await,
        };
        room?;
        self.socket.start_send_unpin(message).map_err(|_| Gone)
    }
}

/// The error of an invalid frame.
fn invalid(reason: &str, session_id: Option<String>) -> RunnerError {
    RunnerError {
        message: shortened(reason).to_owned(),
        code: ErrorCode::InvalidRequest,
        session_id,
        driver: None,
    }
}

async fn in_time<E>(writing: impl Future<Output = Result<(), E>>) -> Result<(), Gone> {
    match tokio::time::timeout(STUCK_WRITE, writing).await {
        Ok(Ok(())) => Ok(()),
        Ok(Err(_)) | Err(_) => Err(Gone),
    }
}

/// The next key or browser. Never returns for those who are not told of them.
async fn next_announcement(announcements: &mut Option<broadcast::Receiver<NewCredential>>) -> NewCredential {
    while let Some(receiver) = announcements {
        match receiver.recv().await {
            Ok(new) => return new,
            Err(broadcast::error::RecvError::Lagged(_)) => {}
            Err(broadcast::error::RecvError::Closed) => *announcements = None,
        }
    }
    std::future::pending().await
}

/// The next measurement. Never returns for a client that has not subscribed.
async fn next_load(statistics: &mut Option<watch::Receiver<Option<Load>>>) -> Load {
    while let Some(receiver) = statistics {
        if receiver.changed().await.is_err() {
            *statistics = None;
        } else if let Some(load) = *receiver.borrow_and_update() {
            return load;
        }
    }
    std::future::pending().await
}
