//! One connection to the event API: a loop that reads frames, hears the live feed, and writes frames.

use std::collections::HashMap;
use std::future::poll_fn;
use std::time::Duration;

use axum::extract::ws::rejection::WebSocketUpgradeRejection;
use axum::extract::ws::{Message, Utf8Bytes, WebSocket, WebSocketUpgrade};
use axum::extract::{Extension, Query, State};
use axum::response::{IntoResponse, Response};
use futures_util::{FutureExt, SinkExt};
use serde::Deserialize;
use tiller_core::{
    AgentStatus, CommandError, Event, Lagged, LiveFeed, Notice, RawJson, SessionId, Sessions, Timestamp,
};
use tokio::sync::watch;
use tokio::time::Instant;

use super::commands::{self, Failed, session_id};
use super::parse::parse;
use super::translate;
use super::wire::{ClientEvent, ServerEvent};
use crate::app::App;
use crate::auth::Visitor;
use crate::error::ApiError;
use crate::oversize;
use crate::pulse::Pulse;
use crate::statistics::Load;

/// Nothing heard for this long, not even an answer to a ping: the other side is gone.
const SILENCE: Duration = Duration::from_mins(1);

/// One write that takes this long means that the other side does not read.
const STUCK_WRITE: Duration = Duration::from_secs(30);

/// How many notices go out in one go at most.
const TOGETHER: usize = 1024;

/// How many events are read from the log at once while replaying.
const REPLAY_PAGE: u32 = 512;

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
        let connection = Connection {
            socket,
            sessions,
            feed,
            hears_all,
            since: Timestamp::now(),
            delivered: HashMap::new(),
            statistics: None,
        };
        if let Err(Gone) = connection.run(&app, &visitor).await {
            tracing::debug!("a client went away");
        }
    })
}

/// The other side is gone, or must go.
struct Gone;

struct Connection {
    socket: WebSocket,
    sessions: Sessions,
    feed: LiveFeed,
    hears_all: bool,
    /// When the connection was made.
    since: Timestamp,
    /// The last `seq` that was sent of each session that the client subscribed to.
    delivered: HashMap<SessionId, u64>,
    /// Once the client has asked for it.
    statistics: Option<watch::Receiver<Option<Load>>>,
}

impl Connection {
    async fn run(mut self, app: &App, visitor: &Visitor) -> Result<(), Gone> {
        let mut pulse = Pulse::new(app, visitor);
        let mut last_heard = Instant::now();
        loop {
            tokio::select! {
                frame = self.socket.recv() => {
                    last_heard = Instant::now();
                    match frame {
                        Some(Ok(Message::Text(text))) if oversize::is_too_long(&text) => {
                            self.not_understood(None, oversize::TOO_LONG).await?;
                        }
                        Some(Ok(Message::Text(text))) => self.frame(app, &text).await?,
                        Some(Ok(Message::Binary(_))) => self.not_understood(None, "Send text frames with JSON.").await?,
                        Some(Ok(Message::Ping(_) | Message::Pong(_))) => {}
                        Some(Err(error)) => {
                            oversize::refuse(&mut self.socket, error).await;
                            return Err(Gone);
                        }
                        Some(Ok(Message::Close(_))) | None => return Err(Gone),
                    }
                }
                notice = self.feed.next() => match notice {
                    Some(heard) => self.hear(heard).await?,
                    None => return Err(Gone),
                },
                load = next_load(&mut self.statistics) => {
                    let Load { cpu, ram, storage } = load;
                    self.send(&ServerEvent::Statistics { cpu_usage: cpu, ram_usage: ram, storage_usage: storage }).await?;
                }
                () = pulse.beat() => {
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
                Ok(notice) => self.notice(&notice).await?,
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

    async fn frame(&mut self, app: &App, text: &str) -> Result<(), Gone> {
        match parse(text) {
            Ok(event) => self.handle(app, event).await,
            Err(wrong) => self.not_understood(wrong.session.as_deref(), &wrong.reason).await,
        }
    }

    async fn handle(&mut self, app: &App, event: ClientEvent) -> Result<(), Gone> {
        match event {
            ClientEvent::StatisticsSubscribe => {
                self.statistics = Some(app.statistics.watch());
                Ok(())
            }
            ClientEvent::SessionList => {
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
            ClientEvent::SessionDelete(delete) => self.delete(delete.session_id, delete.after_ms).await,
            ClientEvent::SessionHistory(request) => {
                let page = match translate::page(&request) {
                    Ok(page) => page,
                    Err(wrong) => {
                        return self
                            .not_understood(Some(&request.session_id), &wrong.reason)
                            .await;
                    }
                };
                let outcome = match session_id(&request.session_id) {
                    Ok(id) => self.sessions.history(id, page).await,
                    Err(error) => Err(error),
                };
                match outcome {
                    Ok(page) => self.send(&translate::history(page)).await,
                    Err(error) => self.outcome(Err(error), &request.session_id).await,
                }
            }
            ClientEvent::SessionSubscribe(subscribe) => {
                let outcome = match session_id(&subscribe.session_id) {
                    Ok(id) => self.subscribe(id, subscribe.after_seq.unwrap_or(0)).await?,
                    Err(error) => Err(error),
                };
                self.outcome(outcome, &subscribe.session_id).await
            }
            ClientEvent::PermissionResponse(response) => {
                let session = response.session_id.clone();
                let parsed = translate::decision(&response)
                    .and_then(|decision| Ok((decision, translate::answer(response.result)?)));
                let (decision, answer) = match parsed {
                    Ok(parsed) => parsed,
                    Err(wrong) => return self.not_understood(Some(&session), &wrong.reason).await,
                };
                let outcome = match session_id(&session) {
                    Ok(id) => self.sessions.answer(id, decision, answer).await,
                    Err(error) => Err(error),
                };
                self.outcome(outcome, &session).await
            }
            ClientEvent::HookResponse(response) => {
                let session = response.session_id;
                let output = match RawJson::of(&response.output) {
                    Ok(output) => output,
                    Err(error) => return self.not_understood(Some(&session), &error.to_string()).await,
                };
                let outcome = match session_id(&session) {
                    Ok(id) => self.sessions.answer_hook(id, &response.callback_id, output).await,
                    Err(error) => Err(error),
                };
                self.outcome(outcome, &session).await
            }
            command => match commands::run(app, &self.sessions, command).await {
                Ok(None) => Ok(()),
                Ok(Some(answer)) => self.send(&answer).await,
                Err(Failed { error, session }) => self.error(session.as_deref(), &error).await,
            },
        }
    }

    async fn delete(&mut self, session: String, after_ms: Option<u32>) -> Result<(), Gone> {
        let known = session_id(&session)
            .ok()
            .filter(|id| self.sessions.find(*id).is_some());
        let Some(id) = known else {
            return self
                .send(&ServerEvent::SessionDeleted { session_id: session })
                .await;
        };
        // Success is told to everyone by the feed, this client included, unless it chose not to hear it.
        let later = after_ms.filter(|after| *after > 0);
        match commands::delete(&self.sessions, id, later).await {
            Ok(()) if later.is_some() || self.hears(id) => Ok(()),
            Ok(()) => {
                self.send(&ServerEvent::SessionDeleted { session_id: session })
                    .await
            }
            Err(error) => self.outcome(Err(error), &session).await,
        }
    }

    /// Sends what the log has after `after`; from then on the feed goes on where the log ended.
    async fn subscribe(&mut self, session: SessionId, after: u64) -> Result<Result<(), CommandError>, Gone> {
        let mut last = after;
        // Where no agent runs, nothing can come that the client has seen already: it has seen what a crash of the machine
        // has taken back, or it has mistaken one server for another.
        if let Some((record, _)) = self.sessions.find(session)
            && after > record.last_seq
            && matches!(
                self.sessions.agent_status(session),
                AgentStatus::Absent | AgentStatus::Hibernated
            )
        {
            last = record.last_seq;
            let reason = format!(
                "The session's last event is number {last}, and more of it is known here. Load it again from its beginning."
            );
            self.not_understood(Some(&session.to_string()), &reason).await?;
        }
        loop {
            let page = match self.sessions.replay(session, last, REPLAY_PAGE).await {
                Ok(page) => page,
                Err(error) => return Ok(Err(error)),
            };
            for event in &page {
                self.send_event(event).await?;
                last = event.seq;
            }
            self.delivered.insert(session, last);
            if page.len() < REPLAY_PAGE as usize {
                return Ok(Ok(()));
            }
        }
    }

    fn hears(&self, session: SessionId) -> bool {
        self.hears_all || self.delivered.contains_key(&session)
    }

    async fn notice(&mut self, notice: &Notice) -> Result<(), Gone> {
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
            Notice::Queue { session, prompts } => {
                let (session_id, prompts) = (session.to_string(), translate::texts(prompts));
                self.send(&ServerEvent::SessionQueue { session_id, prompts })
                    .await
            }
            Notice::Updated(session) => match commands::entry(&self.sessions, *session) {
                Some(session) => {
                    let session = Box::new(session);
                    self.send(&ServerEvent::SessionUpdated { session }).await
                }
                // Deleted meanwhile, which is told next.
                None => Ok(()),
            },
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
                self.send(&ServerEvent::SessionDeleted {
                    session_id: session.to_string(),
                })
                .await
            }
        }
    }

    /// The client was too slow: it has to ask again for what it missed.
    async fn reset(&mut self) -> Result<(), Gone> {
        for (record, _) in self.sessions.list() {
            // What has not changed since the client came can't have been missed.
            if self.hears(record.id) && record.updated_at >= self.since {
                let (session_id, last_seq) = (record.id.to_string(), record.last_seq);
                self.delivered.remove(&record.id);
                self.send(&ServerEvent::SessionReset { session_id, last_seq })
                    .await?;
            }
        }
        Ok(())
    }

    async fn outcome(&mut self, outcome: Result<(), CommandError>, session: &str) -> Result<(), Gone> {
        match outcome {
            Ok(()) => Ok(()),
            Err(error) => self.error(Some(session), &error).await,
        }
    }

    async fn error(&mut self, session: Option<&str>, error: &CommandError) -> Result<(), Gone> {
        self.send(&translate::refusal(error, session.map(str::to_owned)))
            .await
    }

    async fn not_understood(&mut self, session: Option<&str>, reason: &str) -> Result<(), Gone> {
        self.send(&ServerEvent::RunnerError {
            message: reason.to_owned(),
            code: "invalid_request",
            session_id: session.map(str::to_owned),
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
