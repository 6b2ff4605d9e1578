//! Writes a session's published events to the store.
//!
//! The output of an agent with a keeper can be read again after a crash, so its messages are published first and
//! written behind, in groups. All other events are written before they are published, together with the events still
//! waiting: the log has the order in which events were published.

use std::collections::VecDeque;
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::future::BoxFuture;
use tokio::time::Instant;

use crate::event::{Event, EventBody};
use crate::ids::PromptId;
use crate::prompt::Image;
use crate::session::state::SessionRecord;
use crate::store::{Commit, Epoch, Store, StoreError};

/// The interval of writes: a sync costs more than everything else that a message costs. All sessions write at the same
/// moments, so that fifty busy agents need as many syncs as one. The interval is short enough that one write takes less
/// than a millisecond of a processor, which other events have to wait for.
const PACE: Duration = Duration::from_millis(100);

/// The time of the next write.
fn next_moment() -> Instant {
    static FIRST: LazyLock<Instant> = LazyLock::new(Instant::now);
    let gone = FIRST.elapsed().as_nanos() / PACE.as_nanos();
    *FIRST + PACE * u32::try_from(gone + 1).unwrap_or(u32::MAX)
}

/// This many events are written without waiting.
const MANY: usize = 4096;

/// How long to wait before a failed write is retried.
pub(super) const RETRY: Duration = Duration::from_millis(500);

/// How much may be published and not yet written. Beyond that the agent has to wait.
const MOST_EVENTS: usize = 16 * 1024;
const MOST_BYTES: usize = 16 * 1024 * 1024;

/// The published events that may not be stored yet, in order. Readers of the log append them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tail(Arc<Mutex<VecDeque<Arc<Event>>>>);

impl Tail {
    /// Must be read before the log: events that leave the tail are in the log by then.
    pub(crate) fn events(&self) -> Vec<Arc<Event>> {
        self.lock().iter().cloned().collect()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.lock().is_empty()
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<Arc<Event>>> {
        // The queue is consistent between any two statements, so a panic elsewhere does not spoil it.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

pub(super) struct Journal {
    store: Arc<dyn Store>,
    epoch: Epoch,
    /// The number of the last event that is known to be stored.
    stored_seq: u64,
    tail: Tail,
    bytes: usize,
    flight: Option<Flight>,
    next_at: Instant,
    /// The last write failed, so the next one waits.
    refused: bool,
}

/// A write in progress.
struct Flight {
    events: usize,
    bytes: usize,
    /// The position in the agent's output up to which this write reaches.
    position: Option<u64>,
    last_seq: u64,
    outcome: BoxFuture<'static, Result<(), StoreError>>,
}

/// What a step adds to the log.
#[derive(Default)]
pub(super) struct StepContent {
    pub(super) events: Vec<Arc<Event>>,
    pub(super) images: Vec<Image>,
    /// The prompts that the step accepts.
    pub(super) prompts: Vec<PromptId>,
}

/// What the journal reports.
pub(super) enum Progress {
    /// It is time to write.
    Due,
    /// The agent's output is stored up to this position.
    Written { position: Option<u64> },
    /// The write failed and will be retried.
    Refused(StoreError),
}

impl Journal {
    /// The journal of a session's owner. `stored_seq`: the number of the last stored event.
    pub(super) fn new(store: Arc<dyn Store>, epoch: Epoch, stored_seq: u64) -> Self {
        Self {
            store,
            epoch,
            stored_seq,
            tail: Tail::default(),
            bytes: 0,
            flight: None,
            next_at: Instant::now(),
            refused: false,
        }
    }

    pub(super) fn tail(&self) -> Tail {
        self.tail.clone()
    }

    /// Whether more events may be published.
    pub(super) fn has_room(&self) -> bool {
        self.bytes < MOST_BYTES && self.tail.lock().len() < MOST_EVENTS
    }

    /// Adds events, before they are published.
    pub(super) fn add(&mut self, events: &[Arc<Event>]) {
        self.bytes += events.iter().map(|event| size(event)).sum::<usize>();
        self.tail.lock().extend(events.iter().cloned());
    }

    /// Waits for the next progress. Cancel-safe.
    pub(super) async fn progress(&mut self) -> Progress {
        if let Some(flight) = &mut self.flight {
            let outcome = (&mut flight.outcome).await;
            return match self.landed(outcome) {
                Ok(position) => Progress::Written { position },
                Err(error) => Progress::Refused(error),
            };
        }
        let waiting = self.tail.lock().len();
        if waiting == 0 {
            return std::future::pending().await;
        }
        if waiting < MANY || self.refused {
            tokio::time::sleep_until(self.next_at).await;
        }
        Progress::Due
    }

    /// Begins to write the published events.
    pub(super) fn begin(&mut self, record: SessionRecord) {
        if self.flight.is_some() {
            return;
        }
        let events: Vec<_> = self.tail.events();
        self.next_at = next_moment();
        let position = record.run.as_ref().map(|run| run.position);
        let (store, count, bytes) = (Arc::clone(&self.store), events.len(), self.bytes);
        let last_seq = record.last_seq;
        let commit = Commit {
            epoch: self.epoch,
            expected_last_seq: self.stored_seq,
            record,
            events,
            images: Vec::new(),
            prompts: Vec::new(),
        };
        self.flight = Some(Flight {
            events: count,
            bytes,
            position,
            last_seq,
            outcome: Box::pin(async move { store.commit(commit).await }),
        });
    }

    /// Writes all published events and then `step`. Returns when everything is stored.
    pub(super) async fn write(&mut self, record: SessionRecord, step: StepContent) -> Result<(), StoreError> {
        if let Some(flight) = &mut self.flight {
            let outcome = (&mut flight.outcome).await;
            self.landed(outcome)?;
        }
        let mut events = self.tail.events();
        events.extend(step.events);
        let last_seq = record.last_seq;
        let commit = Commit {
            epoch: self.epoch,
            expected_last_seq: self.stored_seq,
            record,
            events,
            images: step.images,
            prompts: step.prompts,
        };
        self.store.commit(commit).await?;
        self.stored_seq = last_seq;
        self.tail.lock().clear();
        self.bytes = 0;
        Ok(())
    }

    fn landed(&mut self, outcome: Result<(), StoreError>) -> Result<Option<u64>, StoreError> {
        let Some(flight) = self.flight.take() else {
            return Ok(None);
        };
        match outcome {
            Ok(()) => {
                self.refused = false;
                self.stored_seq = flight.last_seq;
                self.tail.lock().drain(..flight.events);
                self.bytes -= flight.bytes;
                Ok(flight.position)
            }
            Err(error) => {
                tracing::error!(%error, "can't store the agent's messages; retrying");
                self.refused = true;
                self.next_at = Instant::now() + RETRY;
                Err(error)
            }
        }
    }
}

/// The approximate size of an event in memory.
fn size(event: &Event) -> usize {
    match &event.body {
        EventBody::Message { raw, .. } => raw.as_str().len(),
        EventBody::Unreadable(line) => line.line.len(),
        _ => 0,
    }
}
