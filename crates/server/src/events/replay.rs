//! The reads of sessions' logs for a connection: pages of history, replays, and missed events.

use std::sync::Arc;

use tiller_core::{CommandError, Event, EventBody, HistoryPage, SessionId};
use tokio::sync::OwnedSemaphorePermit;

use super::reading::{Next, Read, Reading, Subscription};
use super::request::{Origin, Refused, Request};
use super::socket::{Connection, Done, Gone};
use super::translate;
use super::wire::PermissionRequest;
use crate::underway::{Order, Place};

/// A page of more messages may be a whole conversation.
const LARGE_PAGE: u32 = 5000;

/// How many events are read from the log at once while replaying.
const REPLAY_PAGE: u32 = 512;

impl Connection {
    /// Reads a session after its earlier commands are done.
    pub(super) fn read_in_turn(&mut self, id: SessionId, read: Read, request: Request) {
        let sessions = self.sessions.clone();
        let Request { origin, place } = request;
        let turn = async move {
            let read = match read {
                Read::Replay { after, .. } => Read::Replay {
                    after,
                    certain: sessions.wait_until_attached(id).await,
                },
                history @ Read::History(_) => history,
            };
            Done::Turn(id, read, origin)
        };
        self.underway.begin(Order::Question(id), place, turn);
    }

    /// Executes a read whose turn has come.
    pub(super) async fn read(
        &mut self,
        session: SessionId,
        read: Read,
        request: Request,
    ) -> Result<(), Gone> {
        self.readings.entry(session).or_default().ask(read, request);
        self.continue_reading(session).await
    }

    /// Sends a page of history. `turn` is the permit of the one client that is sent a whole conversation.
    pub(super) async fn history_page(
        &mut self,
        session: SessionId,
        page: Result<HistoryPage, CommandError>,
        turn: Option<OwnedSemaphorePermit>,
        origin: &Origin,
    ) -> Result<(), Gone> {
        match page {
            Ok(page) => {
                let waiting = translate::waiting(session, &page.pending);
                self.answer(origin, &translate::history(page).into()).await?;
                self.resend_pending(origin, waiting).await?;
            }
            Err(error) => self.refuse(origin, error.into()).await?,
        }
        if turn.is_some() {
            // Released when the page is gone from memory.
            self.flush().await?;
            drop(turn);
        }
        if let Some(reading) = self.readings.get_mut(&session) {
            reading.finished();
        }
        self.continue_reading(session).await
    }

    /// Sends pending decisions again, so that a client which lost them can show them.
    async fn resend_pending(&mut self, origin: &Origin, waiting: Vec<PermissionRequest>) -> Result<(), Gone> {
        for request in waiting {
            self.answer(origin, &request.into()).await?;
        }
        Ok(())
    }

    /// Continues with the next step of a session's reads.
    pub(super) async fn continue_reading(&mut self, session: SessionId) -> Result<(), Gone> {
        loop {
            let subscription = match self.delivered.get(&session) {
                Some(seen) => Subscription::After(*seen),
                None if self.receives_all() => Subscription::Live,
                None => Subscription::None,
            };
            let Some(reading) = self.readings.get_mut(&session) else {
                return Ok(());
            };
            match reading.next(subscription) {
                Next::Wait => return Ok(()),
                Next::Read(Read::Replay { after, certain }, origin) => {
                    let after = if certain {
                        self.known_place(session, after, &origin).await?
                    } else {
                        after
                    };
                    self.read_page(session, after);
                }
                Next::Read(Read::History(page), origin) => {
                    let sessions = self.sessions.clone();
                    let turns = Arc::clone(&self.app.whole_conversations);
                    let history = async move {
                        let turn = match page.limit() {
                            Some(limit) if limit <= LARGE_PAGE => None,
                            // The semaphore is never closed.
                            _ => turns.acquire_owned().await.ok(),
                        };
                        let page = sessions.history(session, page).await;
                        Done::History(session, Box::new(page), turn, origin)
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

    /// The position at which a replay after `after` begins.
    async fn known_place(&mut self, session: SessionId, after: u64, origin: &Origin) -> Result<u64, Gone> {
        // The client claims events that this session does not have: a crash of the machine lost them, or the client
        // confused one session or server with another.
        if let Ok((record, _)) = self.sessions.find(session).await
            && after > record.last_seq
        {
            let last = record.last_seq;
            let reason = format!(
                "The session's last event is number {last}, which is before 'afterSeq'. Load the session again from the beginning."
            );
            self.refuse(origin, Refused::Invalid(reason)).await?;
            return Ok(last);
        }
        Ok(after)
    }

    fn read_page(&mut self, session: SessionId, after: u64) {
        if let Some(reading) = self.readings.get_mut(&session) {
            reading.page_begins();
        }
        let sessions = self.sessions.clone();
        let page = async move {
            let page = sessions.replay(session, after, REPLAY_PAGE).await;
            Done::Page(session, after, page)
        };
        self.underway.begin(Order::Beside, Place::default(), page);
    }

    /// Sends the events after `after`. At the end of the log the live feed takes over.
    pub(super) async fn page(
        &mut self,
        session: SessionId,
        after: u64,
        page: Result<Vec<Event>, CommandError>,
    ) -> Result<(), Gone> {
        match page {
            Ok(page) => {
                // The live feed also has events of this page, with the commands that caused them.
                while let Some(heard) = self.feed.try_next() {
                    self.forward_one(heard).await?;
                }
                let mut last = after;
                for event in &page {
                    if let EventBody::DecisionRequested(asked) = &event.body {
                        self.replayed.entry(session).or_default().insert(asked.id);
                    }
                    self.send_event(event).await?;
                    last = event.seq;
                }
                self.delivered.insert(session, last);
                if page.len() == REPLAY_PAGE as usize {
                    self.read_page(session, last);
                } else {
                    let replayed = self.replayed.remove(&session).unwrap_or_default();
                    let reading = self.readings.get_mut(&session);
                    if let Some(origin) = reading.and_then(Reading::page_ended)
                        && let Ok((_, mut pending)) = self.sessions.find(session).await
                    {
                        pending.retain(|asked| !replayed.contains(&asked.id));
                        self.resend_pending(&origin, translate::waiting(session, &pending))
                            .await?;
                    }
                }
            }
            Err(error) => {
                self.replayed.remove(&session);
                if let Some(origin) = self.readings.get_mut(&session).and_then(Reading::failed) {
                    self.refuse(&origin, error.into()).await?;
                } else {
                    tracing::warn!(%error, "a session's log can't be read");
                }
            }
        }
        self.continue_reading(session).await
    }
}
