//! What a connection sends of the live feed.

use std::collections::HashSet;

use tiller_core::{Lagged, Notice, SessionId};

use super::commands::delete::SessionDeleted;
use super::commands::hooks::HookResolved;
use super::commands::list;
use super::commands::prompts::SessionQueue;
use super::socket::{Connection, Gone};
use super::translate;
use super::wire::{RunnerError, SessionReset};

/// How many notices go out at once at most.
const TOGETHER: usize = 1024;

impl Connection {
    /// Sends everything that the feed has, together.
    pub(super) async fn hear(&mut self, first: Result<Notice, Lagged>) -> Result<(), Gone> {
        let mut heard = Some(first);
        let mut together = 0;
        while let Some(next) = heard {
            match next {
                Ok(notice) => self.notice(notice).await?,
                Err(Lagged) => self.reset().await?,
            }
            together += 1;
            // Now and then the client's own frames get their turn.
            heard = if together < TOGETHER {
                self.feed.try_next()
            } else {
                None
            };
        }
        Ok(())
    }

    pub(super) fn hears_all(&self) -> bool {
        self.known.is_some()
    }

    pub(super) fn hears(&self, session: SessionId) -> bool {
        self.hears_all() || self.delivered.contains_key(&session)
    }

    async fn notice(&mut self, notice: Notice) -> Result<(), Gone> {
        if let Some(reading) = self.readings.get_mut(&notice.session()) {
            reading.keep_back(notice);
            return Ok(());
        }
        self.tell(&notice).await
    }

    pub(super) async fn tell(&mut self, notice: &Notice) -> Result<(), Gone> {
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
                let queue = SessionQueue {
                    session_id: session.to_string(),
                    prompts: translate::texts(prompts),
                };
                self.send(queue).await
            }
            Notice::Updated(session) => match list::entry(&self.sessions, *session) {
                Some(entry) => self.send(entry).await,
                // Deleted meanwhile, which is told next.
                None => Ok(()),
            },
            Notice::HeldUp { session, reason } => {
                self.send(RunnerError {
                    message: reason.clone(),
                    code: "held_up",
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

    /// The client was too slow: it has to ask again for what it missed. The list tells what no question would bring back,
    /// such as a session that is gone.
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
        self.send(list::listed(&self.sessions)).await
    }

    /// A session that is gone has nothing to ask for.
    pub(super) async fn reset_one(&mut self, session: SessionId) -> Result<(), Gone> {
        let Some((record, _)) = self.sessions.find(session) else {
            return self.tell(&Notice::Deleted(session)).await;
        };
        self.delivered.remove(&session);
        let (session_id, last_seq) = (session.to_string(), record.last_seq);
        self.send(SessionReset { session_id, last_seq }).await
    }
}
