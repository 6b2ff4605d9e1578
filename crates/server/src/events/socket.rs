//! One connection to the event API: a loop that reads frames, hears the live feed, and writes frames. It waits for nothing
//! else: commands are carried out beside it, and so is what is read from a log.

use std::collections::{HashMap, HashSet};
use std::future::poll_fn;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::ws::rejection::WebSocketUpgradeRejection;
use axum::extract::ws::{Message, Utf8Bytes, WebSocket, WebSocketUpgrade};
use axum::extract::{Extension, Query, State};
use axum::response::{IntoResponse, Response};
use futures_util::{FutureExt, SinkExt};
use serde::Deserialize;
use tiller_core::{CommandError, Event, HistoryPage, Lagged, LiveFeed, Notice, RawJson, SessionId, Sessions};
use tokio::sync::{OwnedSemaphorePermit, watch};
use tokio::time::Instant;

use super::commands::{self, Answer, Command, Failed, session_id};
use super::known::Known;
use super::parse::parse;
use super::reading::{Hears, Next, Read, Reading};
use super::translate;
use super::wire::{ClientEvent, ServerEvent};
use crate::app::App;
use crate::auth::Visitor;
use crate::error::ApiError;
use crate::oversize;
use crate::pulse::Pulse;
use crate::statistics::Load;
use crate::underway::{Order, Place, Underway};

/// Nothing heard for this long, not even an answer to a ping: the other side is gone.
const SILENCE: Duration = Duration::from_mins(1);

/// One write that takes this long means that the other side does not read.
const STUCK_WRITE: Duration = Duration::from_secs(30);

/// How many characters of what a client sent are repeated when it is not understood.
const REPEATED: usize = 1000;

/// What is more than this many messages may be a whole conversation.
const LARGE_PAGE: u32 = 5000;

/// How many notices go out in one go at most.
const TOGETHER: usize = 1024;

/// How many events are read from the log at once while replaying.
const REPLAY_PAGE: u32 = 512;

/// How much a client may have under way at once. A page asks a few things of each session that it shows; more than this
/// is left in the socket until something is done.
const AT_ONCE: usize = 64;

#[derive(Deserialize)]
pub(crate) struct Options {
    only: Option<String>,
}

pub(crate) async fn upgrade(
    State(app): State<App>,
    Extension(visitor): Extension<Visitor>,
    Query(options): Query<Options>,
    upgrade: Result<WebSocketUpgrade, WebSocketUpgradeRejection>,
) -> Response {
    let Ok(upgrade) = upgrade else {
        return ApiError::NotAWebSocket.into_response();
    };
    if !visitor.viewer.scopes.read {
        return ApiError::Forbidden.into_response();
    }
    let hears_all = options.only.as_deref() != Some("subscribed");
    oversize::limited(upgrade).on_upgrade(async move |socket| {
        let sessions = app.sessions.seen_by(visitor.viewer.clone());
        // Taken before anything is read, so that nothing falls between backlog and live.
        let feed = sessions.watch();
        let mut connection = Connection {
            app,
            socket,
            known: hears_all.then(|| Known::of(&sessions.list())),
            sessions,
            feed,
            delivered: HashMap::new(),
            readings: HashMap::new(),
            deleting: HashSet::new(),
            underway: Underway::new(AT_ONCE),
            statistics: None,
        };
        if let Err(Gone) = connection.run(&visitor).await {
            tracing::debug!("a client went away");
        }
        // Everything else is let go of first: a feed that nobody reads keeps what it has not read.
        let Connection { underway, .. } = connection;
        underway.finish().await;
    })
}

/// The other side is gone, or must go.
struct Gone;

/// What was done beside the loop.
enum Done {
    Command(Result<Answer, Failed>),
    /// A session was to begin, under this id if it is a new one.
    Start(SessionId, Result<Answer, Failed>),
    Delete(SessionId, Result<Answer, Failed>),
    /// Everything that was asked of the session before is done, and now it is read.
    Turn(SessionId, Read),
    Page(SessionId, u64, Result<Vec<Event>, CommandError>),
    History(
        SessionId,
        Box<Result<HistoryPage, CommandError>>,
        Option<OwnedSemaphorePermit>,
    ),
}

struct Connection {
    app: App,
    socket: WebSocket,
    sessions: Sessions,
    feed: LiveFeed,
    /// For a client that hears all sessions: how they stood when it came, or was last told to ask again.
    known: Option<Known>,
    /// The last `seq` that was sent of each session that the client subscribed to.
    delivered: HashMap<SessionId, u64>,
    /// What is being read of a session, and is told before anything else of it.
    readings: HashMap<SessionId, Reading>,
    /// Sessions that this client has asked to delete, until it was told that they are.
    deleting: HashSet<SessionId>,
    underway: Underway<Done>,
    /// Once the client has asked for it.
    statistics: Option<watch::Receiver<Option<Load>>>,
}

impl Connection {
    async fn run(&mut self, visitor: &Visitor) -> Result<(), Gone> {
        let mut pulse = Pulse::new(&self.app, visitor);
        let mut last_heard = Instant::now();
        loop {
            let listens = self.underway.has_room();
            tokio::select! {
                frame = self.socket.recv(), if listens => {
                    last_heard = Instant::now();
                    match frame {
                        Some(Ok(Message::Text(text))) if oversize::is_too_long(&text) => {
                            self.not_understood(None, oversize::TOO_LONG).await?;
                        }
                        Some(Ok(Message::Text(text))) => self.frame(&text).await?,
                        Some(Ok(Message::Binary(_))) => self.not_understood(None, "Send text frames with JSON.").await?,
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
                    Some(heard) => self.hear(heard).await?,
                    None => return Err(Gone),
                },
                load = next_load(&mut self.statistics) => {
                    let Load { cpu, ram, storage } = load;
                    self.send(&ServerEvent::Statistics { cpu_usage: cpu, ram_usage: ram, storage_usage: storage }).await?;
                }
                () = pulse.beat() => {
                    if !listens {
                        // What it says can't be heard now.
                        last_heard = Instant::now();
                    }
                    if !pulse.is_welcome().await || last_heard.elapsed() > SILENCE {
                        return Err(Gone);
                    }
                    self.write(Message::Ping(bytes::Bytes::new())).await?;
                }
            }
            in_time(self.socket.flush()).await?;
        }
    }

    /// What the feed has, all of it: it goes out together.
    async fn hear(&mut self, first: Result<Notice, Lagged>) -> Result<(), Gone> {
        let mut heard = Some(first);
        let mut together = 0;
        while let Some(next) = heard {
            match next {
                Ok(notice) => self.notice(notice).await?,
                Err(Lagged) => self.reset().await?,
            }
            together += 1;
            // Now and then the other side is listened to.
            heard = if together < TOGETHER {
                self.feed.try_next()
            } else {
                None
            };
        }
        Ok(())
    }

    async fn frame(&mut self, text: &str) -> Result<(), Gone> {
        let place = self.underway.place(text.len());
        match parse(text) {
            Ok(event) => self.handle(event, place).await,
            Err(wrong) => self.not_understood(wrong.session.as_deref(), &wrong.reason).await,
        }
    }

    async fn handle(&mut self, event: ClientEvent, place: Place) -> Result<(), Gone> {
        match event {
            ClientEvent::StatisticsSubscribe => {
                self.statistics = Some(self.app.statistics.watch());
                Ok(())
            }
            ClientEvent::SessionList => self.list().await,
            ClientEvent::SessionHistory(request) => match translate::page(&request) {
                Ok(page) => {
                    self.read_in_turn(&request.session_id, Read::History(page), place)
                        .await
                }
                Err(wrong) => {
                    self.not_understood(Some(&request.session_id), &wrong.reason)
                        .await
                }
            },
            ClientEvent::SessionSubscribe(subscribe) => {
                let after = subscribe.after_seq.unwrap_or(0);
                let certain = false;
                self.read_in_turn(&subscribe.session_id, Read::Replay { after, certain }, place)
                    .await
            }
            ClientEvent::PermissionResponse(response) => {
                let session = response.session_id.clone();
                let parsed = translate::decision(&response)
                    .and_then(|decision| Ok((decision, translate::answer(response.result)?)));
                match (parsed, session_id(&session)) {
                    (Ok((decision, answer)), Ok(id)) => {
                        self.begin(Command::Answer(id, decision, answer), place);
                        Ok(())
                    }
                    (Err(wrong), _) => self.not_understood(Some(&session), &wrong.reason).await,
                    (Ok(_), Err(error)) => self.error(Some(&session), &error).await,
                }
            }
            ClientEvent::HookResponse(response) => {
                let session = response.session_id;
                match (RawJson::of(&response.output), session_id(&session)) {
                    (Ok(output), Ok(id)) => {
                        let command = Command::AnswerHook {
                            session: id,
                            callback: response.callback_id,
                            output,
                        };
                        self.begin(command, place);
                        Ok(())
                    }
                    (Err(error), _) => self.not_understood(Some(&session), &error.to_string()).await,
                    (Ok(_), Err(error)) => self.error(Some(&session), &error).await,
                }
            }
            ClientEvent::SessionStart(start) => {
                let new = SessionId::random();
                // Who wants to know which session it became is told that first.
                if self.hears_all() && start.request_id.is_some() {
                    self.readings.insert(new, Reading::of_one_that_begins());
                }
                self.begin(Command::Start(Box::new(start), new), place);
                Ok(())
            }
            ClientEvent::SessionInquire(inquire)
                if session_id(&inquire.session_id).is_ok_and(|id| !self.underway.may_ask(id)) =>
            {
                self.send(&translate::unanswered(inquire)).await
            }
            event => {
                self.begin(Command::Event(Box::new(event)), place);
                Ok(())
            }
        }
    }

    fn begin(&mut self, command: Command, place: Place) {
        let (app, sessions) = (self.app.clone(), self.sessions.clone());
        let order = command.order(&self.sessions);
        let (starts, deletes) = (command.starts(), command.deletes());
        self.deleting.extend(deletes);
        self.underway.begin(order, place, async move {
            let done = command.run(&app, &sessions).await;
            match (starts, deletes) {
                (Some(new), _) => Done::Start(new, done),
                (None, Some(session)) => Done::Delete(session, done),
                (None, None) => Done::Command(done),
            }
        });
    }

    async fn done(&mut self, done: Done, place: Place) -> Result<(), Gone> {
        match done {
            Done::Command(done) => self.answer(done).await,
            Done::Start(session, done) => {
                let begun = done.is_ok();
                self.answer(done).await?;
                match self.readings.get_mut(&session) {
                    Some(reading) if begun => reading.is_done(),
                    _ => drop(self.readings.remove(&session)),
                }
                self.go_on(session).await
            }
            Done::Delete(session, done) => {
                let told = !self.deleting.remove(&session);
                match done {
                    // Success is told to everyone by the feed, this client included, unless it chose not to hear it.
                    Ok(Answer::Deleted(_)) if told || self.hears(session) => Ok(()),
                    done => self.answer(done).await,
                }
            }
            Done::Turn(session, read) => {
                self.readings.entry(session).or_default().ask(read, place);
                self.go_on(session).await
            }
            Done::Page(session, after, page) => self.page(session, after, page).await,
            Done::History(session, page, turn) => {
                match *page {
                    Ok(page) => self.send(&translate::history(page)).await?,
                    Err(error) => self.error(Some(&session.to_string()), &error).await?,
                }
                if turn.is_some() {
                    // Over when it is gone from memory.
                    in_time(self.socket.flush()).await?;
                    drop(turn);
                }
                if let Some(reading) = self.readings.get_mut(&session) {
                    reading.is_done();
                }
                self.go_on(session).await
            }
        }
    }

    async fn answer(&mut self, done: Result<Answer, Failed>) -> Result<(), Gone> {
        match done {
            Ok(Answer::Nothing) => Ok(()),
            Ok(Answer::Event(event)) => self.send(&event).await,
            Ok(Answer::Entry(session)) => self.entry(session).await,
            Ok(Answer::Deleted(session_id)) => self.send(&ServerEvent::SessionDeleted { session_id }).await,
            Err(Failed { error, session }) => self.error(session.as_deref(), &error).await,
        }
    }

    async fn list(&mut self) -> Result<(), Gone> {
        let sessions = self.sessions.list().into_iter();
        let sessions = sessions
            .map(|(record, pending)| {
                let agent = self.sessions.agent_status(record.id);
                let usage = self.sessions.usage(record.id);
                translate::session(record, pending, agent, usage)
            })
            .collect();
        self.send(&ServerEvent::SessionList { sessions }).await
    }

    /// Reads something of a session once everything is done that was asked of it before.
    async fn read_in_turn(&mut self, session: &str, read: Read, place: Place) -> Result<(), Gone> {
        match session_id(session) {
            Ok(id) => {
                let sessions = self.sessions.clone();
                let turn = async move {
                    let read = match read {
                        Read::Replay { after, .. } => Read::Replay {
                            after,
                            certain: sessions.until_found(id).await,
                        },
                        history @ Read::History(_) => history,
                    };
                    Done::Turn(id, read)
                };
                self.underway.begin(Order::Question(id), place, turn);
                Ok(())
            }
            Err(error) => self.error(Some(session), &error).await,
        }
    }

    /// Does what is next for a session of which something is read.
    async fn go_on(&mut self, session: SessionId) -> Result<(), Gone> {
        loop {
            let hears = match self.delivered.get(&session) {
                Some(seen) => Hears::After(*seen),
                None if self.hears_all() => Hears::Live,
                None => Hears::Nothing,
            };
            let Some(reading) = self.readings.get_mut(&session) else {
                return Ok(());
            };
            match reading.next(hears) {
                Next::Wait => return Ok(()),
                Next::Read(Read::Replay { after, certain }) => {
                    let after = if certain {
                        self.known_place(session, after).await?
                    } else {
                        after
                    };
                    self.read_page(session, after);
                }
                Next::Read(Read::History(page)) => {
                    let sessions = self.sessions.clone();
                    let turns = Arc::clone(&self.app.whole_conversations);
                    let history = async move {
                        let turn = match page.limit() {
                            Some(limit) if limit <= LARGE_PAGE => None,
                            // Never closed.
                            _ => turns.acquire_owned().await.ok(),
                        };
                        let page = sessions.history(session, page).await;
                        Done::History(session, Box::new(page), turn)
                    };
                    self.underway.begin(Order::Beside, Place::default(), history);
                }
                Next::CatchUp { after } => self.read_page(session, after),
                Next::Tell(notices) => {
                    for notice in notices {
                        self.tell(&notice).await?;
                    }
                }
                Next::Over => {
                    self.readings.remove(&session);
                }
                Next::Lagged => {
                    self.readings.remove(&session);
                    self.reset_one(session).await?;
                }
            }
        }
    }

    /// Where a replay begins that is to begin after `after`.
    async fn known_place(&mut self, session: SessionId, after: u64) -> Result<u64, Gone> {
        // Nothing can come that the client has seen already: it has seen what a crash of the machine has taken back, or it
        // has mistaken one session or server for another.
        if let Some((record, _)) = self.sessions.find(session)
            && after > record.last_seq
        {
            let last = record.last_seq;
            let reason = format!(
                "The session's last event is number {last}, and more of it is known here. Load it again from its beginning."
            );
            self.not_understood(Some(&session.to_string()), &reason).await?;
            return Ok(last);
        }
        Ok(after)
    }

    fn read_page(&mut self, session: SessionId, after: u64) {
        if let Some(reading) = self.readings.get_mut(&session) {
            reading.begins_a_page();
        }
        let sessions = self.sessions.clone();
        let page = async move {
            let page = sessions.replay(session, after, REPLAY_PAGE).await;
            Done::Page(session, after, page)
        };
        self.underway.begin(Order::Beside, Place::default(), page);
    }

    /// Sends what the log has after `after`; from its end on the feed goes on.
    async fn page(
        &mut self,
        session: SessionId,
        after: u64,
        page: Result<Vec<Event>, CommandError>,
    ) -> Result<(), Gone> {
        match page {
            Ok(page) => {
                let mut last = after;
                for event in &page {
                    self.send_event(event).await?;
                    last = event.seq;
                }
                self.delivered.insert(session, last);
                if page.len() == REPLAY_PAGE as usize {
                    self.read_page(session, last);
                } else if let Some(reading) = self.readings.get_mut(&session) {
                    reading.reached_the_end();
                }
            }
            Err(error) => {
                let asked = self.readings.get_mut(&session).is_some_and(Reading::failed);
                if asked {
                    self.error(Some(&session.to_string()), &error).await?;
                } else {
                    tracing::warn!(%error, "a session's log can't be read");
                }
            }
        }
        self.go_on(session).await
    }

    fn hears_all(&self) -> bool {
        self.known.is_some()
    }

    fn hears(&self, session: SessionId) -> bool {
        self.hears_all() || self.delivered.contains_key(&session)
    }

    async fn notice(&mut self, notice: Notice) -> Result<(), Gone> {
        if let Some(reading) = self.readings.get_mut(&notice.session()) {
            reading.keep_back(notice);
            return Ok(());
        }
        self.tell(&notice).await
    }

    async fn tell(&mut self, notice: &Notice) -> Result<(), Gone> {
        if !self.hears(notice.session()) {
            return Ok(());
        }
        match notice {
            Notice::Event(event) => {
                if let Some(delivered) = self.delivered.get_mut(&event.session) {
                    if event.seq <= *delivered {
                        return Ok(());
                    }
                    *delivered = event.seq;
                }
                self.send_event(event).await
            }
            Notice::Queue { session, prompts, .. } => {
                let (session_id, prompts) = (session.to_string(), translate::texts(prompts));
                self.send(&ServerEvent::SessionQueue { session_id, prompts })
                    .await
            }
            Notice::Updated(session) => self.entry(*session).await,
            Notice::HeldUp { session, reason } => {
                self.send(&ServerEvent::RunnerError {
                    message: reason.clone(),
                    code: "held_up",
                    session_id: Some(session.to_string()),
                    driver: None,
                })
                .await
            }
            Notice::Hook { session, call } => self.send(&translate::hook_callback(*session, call)).await,
            Notice::HookClosed {
                session,
                agent_request,
            } => {
                self.send(&ServerEvent::HookResolved {
                    session_id: session.to_string(),
                    callback_id: agent_request.clone(),
                })
                .await
            }
            Notice::Deleted(session) => {
                self.delivered.remove(session);
                self.deleting.remove(session);
                self.send(&ServerEvent::SessionDeleted {
                    session_id: session.to_string(),
                })
                .await
            }
        }
    }

    /// How a session stands now.
    async fn entry(&mut self, session: SessionId) -> Result<(), Gone> {
        match commands::entry(&self.sessions, session) {
            Some(session) => {
                let session = Box::new(session);
                self.send(&ServerEvent::SessionUpdated { session }).await
            }
            // Deleted meanwhile, which is told next.
            None => Ok(()),
        }
    }

    /// The client was too slow: it has to ask again for what it missed. What no question would bring back, such as a session
    /// that is gone, the list tells.
    async fn reset(&mut self) -> Result<(), Gone> {
        let listed = self.sessions.list();
        let mut missed: HashSet<_> = self.delivered.keys().copied().collect();
        if let Some(known) = &mut self.known {
            missed.extend(known.changed(&listed));
        }
        for session in missed {
            if let Some(reading) = self.readings.get_mut(&session) {
                reading.lag();
            } else {
                self.reset_one(session).await?;
            }
        }
        self.list().await
    }

    /// A session that is gone has nothing to ask for.
    async fn reset_one(&mut self, session: SessionId) -> Result<(), Gone> {
        let Some((record, _)) = self.sessions.find(session) else {
            return self.tell(&Notice::Deleted(session)).await;
        };
        self.delivered.remove(&session);
        let (session_id, last_seq) = (session.to_string(), record.last_seq);
        self.send(&ServerEvent::SessionReset { session_id, last_seq })
            .await
    }

    async fn error(&mut self, session: Option<&str>, error: &CommandError) -> Result<(), Gone> {
        let session = session.map(|session| shortened(session).to_owned());
        self.send(&translate::refusal(error, session)).await
    }

    async fn not_understood(&mut self, session: Option<&str>, reason: &str) -> Result<(), Gone> {
        self.send(&ServerEvent::RunnerError {
            message: shortened(reason).to_owned(),
            code: "invalid_request",
            session_id: session.map(|session| shortened(session).to_owned()),
            driver: None,
        })
        .await
    }

    async fn send(&mut self, event: &ServerEvent) -> Result<(), Gone> {
        self.send_text(serde_json::to_string(event)).await
    }

    async fn send_event(&mut self, event: &Event) -> Result<(), Gone> {
        self.send_text(translate::frame(event)).await
    }

    async fn send_text(&mut self, text: Result<String, serde_json::Error>) -> Result<(), Gone> {
        match text {
            Ok(text) => self.write(Message::Text(Utf8Bytes::from(text))).await,
            Err(error) => {
                tracing::error!(%error, "an event can't be written as JSON");
                Ok(())
            }
        }
    }

    /// It leaves with the next flush, or when there is enough of it.
    async fn write(&mut self, message: Message) -> Result<(), Gone> {
        // There nearly always is room, and then nobody needs a clock.
        let room = match poll_fn(|cx| self.socket.poll_ready_unpin(cx)).now_or_never() {
            Some(room) => room.map_err(|_| Gone),
            None => in_time(poll_fn(|cx| self.socket.poll_ready_unpin(cx))).await,
        };
        room?;
        self.socket.start_send_unpin(message).map_err(|_| Gone)
    }
}

/// What was sent is repeated, but not all of a message of megabytes.
fn shortened(text: &str) -> &str {
    text.char_indices()
        .nth(REPEATED)
        .map_or(text, |(end, _)| &text[..end])
}

async fn in_time<E>(writing: impl Future<Output = Result<(), E>>) -> Result<(), Gone> {
    match tokio::time::timeout(STUCK_WRITE, writing).await {
        Ok(Ok(())) => Ok(()),
        Ok(Err(_)) | Err(_) => Err(Gone),
    }
}

/// The next look at the machine. Never returns for a client that has not asked.
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
