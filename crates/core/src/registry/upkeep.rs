//! Background work: sessions are deleted when they are due, old sessions and streamed pieces are removed, and totals are
//! counted for sessions that an earlier version stored without them. It changes only our own data, never the agent's.

use std::time::Duration;

use tokio::time::Instant;

use super::{CommandError, Sessions};
use crate::ids::Timestamp;
use crate::session::{AgentStatus, Deletion};
use crate::store::{ListedSession, SessionQuery, StoreError};

/// How often expired data is looked for.
const INTERVAL: Duration = Duration::from_hours(1);

/// How long to wait after a failed deletion.
const RETRY: Duration = Duration::from_mins(1);

/// How many old sessions are looked for at once.
const TOGETHER: u32 = 500;

/// How long after the start totals are counted for sessions that have none: clients that connect at the start come first.
const BACKFILL_DELAY: Duration = Duration::from_secs(5);

/// How many sessions without totals are looked for at once.
const BACKFILL_PAGE: u32 = 100;

/// How long data is kept.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Retention {
    /// How long sessions without any activity are kept. `None`: forever.
    pub sessions: Option<Duration>,
    /// How long the streamed fragments of a message are kept once the whole message is stored.
    pub pieces: Duration,
}

impl Sessions {
    /// Does the background work. Never returns.
    pub async fn upkeep(&self, retention: Retention) {
        let backfill = async {
            tokio::time::sleep(BACKFILL_DELAY).await;
            if let Err(error) = self.backfill_totals().await {
                tracing::error!(%error, "can't count the totals of older sessions; the next start tries again");
            }
        };
        tokio::join!(self.tidy_forever(retention), backfill);
    }

    /// Counts the totals of every session that is stored without them, one session after the other. A session whose log
    /// can't be read is skipped.
    pub async fn backfill_totals(&self) -> Result<(), CommandError> {
        let mut query = SessionQuery {
            without_summary: true,
            limit: Some(BACKFILL_PAGE),
            ..SessionQuery::default()
        };
        loop {
            let page = self.shared.store.list(query.clone()).await?;
            let Some(last) = page.last().map(ListedSession::cursor) else {
                return Ok(());
            };
            query.after = Some(last);
            for session in page {
                let ListedSession::Readable { mut record, .. } = session else {
                    continue;
                };
                let began = Instant::now();
                match self.complete_totals(&mut record).await {
                    Ok(()) => {}
                    Err(StoreError::Damaged(reason)) => {
                        tracing::warn!(session = %record.id, reason, "can't count the totals of a session");
                    }
                    Err(error) => return Err(error.into()),
                }
                // Counting takes at most half of the time, so that others can use the store.
                tokio::time::sleep(began.elapsed()).await;
            }
        }
    }

    async fn tidy_forever(&self, retention: Retention) {
        // Not at once: clients that connect at the start come first.
        let mut next_tidying = Instant::now() + RETRY;
        loop {
            let now = Timestamp::now();
            let next_deletion = self.delete_due(now).await;
            if Instant::now() >= next_tidying {
                self.tidy(now, retention).await;
                next_tidying = Instant::now() + INTERVAL;
            }
            let deletion = next_deletion.map(|at| u64::try_from(at.0.saturating_sub(now.0)).unwrap_or(0));
            let deletion = deletion.map(|wait| Instant::now() + Duration::from_millis(wait.max(1)));
            tokio::select! {
                () = tokio::time::sleep_until(deletion.unwrap_or(next_tidying).min(next_tidying)) => {}
                () = self.shared.tidy.notified() => {}
            }
        }
    }

    /// Deletes the sessions that are due. Returns when the next one is.
    async fn delete_due(&self, now: Timestamp) -> Option<Timestamp> {
        let waiting = match self.shared.store.deletions().await {
            Ok(waiting) => waiting,
            Err(error) => {
                tracing::error!(%error, "can't look for sessions to delete; trying again");
                return Some(later(now, RETRY));
            }
        };
        let mut next = None;
        for (id, mut at) in waiting {
            if at <= now {
                match self.delete_if(id, Deletion::Due(now)).await {
                    // False means that the deletion was cancelled.
                    Ok(_) => continue,
                    Err(error) => {
                        tracing::error!(%error, session = %id, "can't delete a session; trying again");
                    }
                }
                at = later(now, RETRY);
            }
            next = Some(next.map_or(at, |next: Timestamp| next.min(at)));
        }
        next
    }

    /// Removes data that is older than its retention at that time.
    pub async fn tidy(&self, now: Timestamp, retention: Retention) {
        if let Some(kept) = retention.sessions {
            let time = earlier(now, kept);
            if let Err(error) = self.remove_unused_since(time).await {
                tracing::error!(%error, "can't look for old sessions");
            }
        }
        match self.shared.store.compact(earlier(now, retention.pieces)).await {
            Ok(0) => {}
            Ok(removed) => tracing::info!(removed, "removed streamed fragments of finished messages"),
            Err(error) => tracing::error!(error = %CommandError::from(error), "can't compact the database"),
        }
    }

    /// Deletes sessions without activity since then and without pending work.
    async fn remove_unused_since(&self, time: Timestamp) -> Result<(), CommandError> {
        let mut after = None;
        loop {
            let unused = self.shared.store.unused_since(time, after, TOGETHER).await?;
            let Some(last) = unused.last().copied() else {
                return Ok(());
            };
            after = Some(last);
            for id in unused {
                let status = self.agent_status(id);
                if !matches!(status, AgentStatus::Absent | AgentStatus::Hibernated) {
                    continue;
                }
                match self.delete_if(id, Deletion::UnusedSince(time)).await {
                    Ok(true) => tracing::info!(session = %id, "deleted an expired session"),
                    // An unreadable session is left for the user to delete.
                    Ok(false) | Err(CommandError::Damaged { .. }) => {}
                    Err(error) => tracing::error!(%error, session = %id, "can't delete an expired session"),
                }
            }
        }
    }
}

fn earlier(now: Timestamp, by: Duration) -> Timestamp {
    Timestamp(now.0.saturating_sub(milliseconds(by)))
}

fn later(now: Timestamp, by: Duration) -> Timestamp {
    Timestamp(now.0.saturating_add(milliseconds(by)))
}

fn milliseconds(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}
