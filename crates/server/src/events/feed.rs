//! What a connection sends from the live feed.

use std::collections::HashSet;

use tiller_core::{CommandError, Lagged, Notice, SessionId};

use super::commands::delete::SessionDeleted;
use super::commands::hooks::HookResolved;
use super::commands::{arrange, list};
use super::socket::{Connection, Gone};
use super::translate;
use super::wire::{RunnerError, SessionReset};
use crate::error::ErrorCode;

/// The maximum number of notices that are sent at once.
const TOGETHER: usize = 1024;

impl Connection {
    /// Sends all notices that the feed has, together.
    pub(super) async fn forward(&mut self, first: Result<Notice, Lagged>) -> Result<(), Gone> {
        let mut heard = Some(first);
        let mut together = 0;
        while let Some(next) = heard {
            self.forward_one(next).await?;
            together += 1;
            // The client's own frames get their turn now and then.
            heard = if together < TOGETHER {
                self.feed.try_next()
            } else {
                None
            };
        }
        Ok(())
    }

    pub(super) async fn forward_one(&mut self, next: Result<Notice, Lagged>) -> Result<(), Gone> {
        match next {
            Ok(notice) => self.notice(notice).await,
            Err(Lagged) => self.reset().await,
        }
    }

    pub(super) fn receives_all(&self) -> bool {
        self.known.is_some()
    }

    pub(super) fn receives(&self, session: SessionId) -> bool {
        self.receives_all() || self.delivered.contains_key(&session)
    }

    async fn notice(&mut self, notice: Notice) -> Result<(), Gone> {
        if let Some(session) = notice.session()
            && let Some(reading) = self.readings.get_mut(&session)
        {
            if let Notice::Event(event) = &notice {
                self.causes.keep_back(event);
            }
            reading.keep_back(notice);
            return Ok(());
        }
        self.tell(&notice).await
    }

    pub(super) async fn tell(&mut self, notice: &Notice) -> Result<(), Gone> {
        let is_received = match notice.session() {
            Some(session) => self.receives(session),
            None => self.receives_all(),
        };
        if !is_received {
            return self.answer_unsubscribed(notice).await;
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
            Notice::Queue {
                session,
                prompts,
                cause,
            } => {
                let command = self.causes.peek(*cause).cloned();
                self.send_as(translate::queue(*session, prompts), command.as_ref())
                    .await
            }
            Notice::Updated(session) => match list::entry(&self.sessions, *session).await {
                Some(entry) => self.send(entry).await,
                // Deleted in the meantime; the next notice says so.
                None => Ok(()),
            },
            Notice::HeldUp { session, reason } => {
                self.send(RunnerError {
                    message: reason.clone(),
                    code: ErrorCode::HeldUp,
                    session_id: Some(session.to_string()),
                    driver: None,
                })
                .await
            }
            Notice::Hook { session, call } => self.send(translate::hook_callback(*session, call)).await,
            Notice::HookClosed {
                session,
                agent_request,
            } => {
                self.send(HookResolved {
                    session_id: session.to_string(),
                    callback_id: agent_request.clone(),
                })
                .await
            }
            Notice::Arranged(arranged) => self.send(arrange::changed(arranged)).await,
            Notice::Deleted(session) => {
                self.delivered.remove(session);
                self.deleting.remove(session);
                self.send(SessionDeleted {
                    session_id: session.to_string(),
                })
                .await
            }
        }
    }

    /// An effect of this client's own commands is also an answer, even in a session that the client has not subscribed
    /// to.
    async fn answer_unsubscribed(&mut self, notice: &Notice) -> Result<(), Gone> {
        match notice {
            Notice::Event(event) => match self.causes.take(event) {
                Some(command) => self.send_text(translate::frame(event, Some(&command))).await,
                None => Ok(()),
            },
            Notice::Queue {
                session,
                prompts,
                cause,
            } => match self.causes.peek(*cause).cloned() {
                Some(command) => {
                    self.send_as(translate::queue(*session, prompts), Some(&command))
                        .await
                }
                None => Ok(()),
            },
            _ => Ok(()),
        }
    }

    /// The client was too slow: it has to ask again for what it missed. The list shows changes that no question would
    /// reveal, such as deleted sessions.
    async fn reset(&mut self) -> Result<(), Gone> {
        let mut missed: HashSet<_> = self.delivered.keys().copied().collect();
        if let Some(known) = &mut self.known {
            let before = std::mem::replace(known, self.sessions.feed_position());
            missed.extend(self.sessions.changed_since(before));
        }
        for session in missed {
            if let Some(reading) = self.readings.get_mut(&session) {
                reading.lag();
            } else {
                self.reset_one(session).await?;
            }
        }
        match list::all(&self.sessions).await {
            Ok(listed) => self.send(listed).await?,
            Err(error) => self.send(translate::refusal(&error, None)).await?,
        }
        // A client that may not read the arrangement has missed nothing of it.
        match self.sessions.arrangement().await {
            Ok(arrangement) if self.receives_all() => self.send(arrange::whole(arrangement)).await,
            Ok(_) | Err(CommandError::Forbidden) => Ok(()),
            Err(error) => self.send(translate::refusal(&error, None)).await,
        }
    }

    /// A deleted session needs no reset.
    pub(super) async fn reset_one(&mut self, session: SessionId) -> Result<(), Gone> {
        let record = match self.sessions.find(session).await {
            Ok((record, _)) => record,
            Err(CommandError::UnknownSession) => return self.tell(&Notice::Deleted(session)).await,
            Err(error) => {
                let session = Some(session.to_string());
                return self.send(translate::refusal(&error, session)).await;
            }
        };
        self.delivered.remove(&session);
        let (session_id, last_seq) = (session.to_string(), record.last_seq);
        self.send(SessionReset { session_id, last_seq }).await
    }
}
