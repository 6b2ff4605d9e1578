//! The live feed: publishes the notices of all sessions to all subscribers.
//!
//! Events that are published together stay together: a busy agent's events arrive in batches, and each batch costs a
//! subscriber one look at the backlog.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::watch;

use crate::arrangement::Arranged;
use crate::credentials::Viewer;
use crate::event::{Event, EventBody, Notice};
use crate::ids::SessionId;
use crate::rights::Provenance;

/// How many bytes may wait for a slow subscriber before it is told to resynchronise.
const BACKLOG_BYTES: usize = 32 * 1024 * 1024;

/// The approximate size of an event without its text.
const EVENT_BYTES: usize = 256;

#[derive(Clone, Debug)]
pub(crate) struct Hub {
    backlog: Arc<Mutex<Backlog>>,
    news: Arc<watch::Sender<()>>,
}

/// The notices that were published and not yet read by all subscribers.
#[derive(Debug, Default)]
struct Backlog {
    /// The number of the first slot in `slots`.
    first: u64,
    slots: VecDeque<Slot>,
    bytes: usize,
    readers: usize,
    /// How many events were published.
    published: u64,
    /// For each session, the position of its last notice, and where the session comes from.
    last: HashMap<SessionId, (u64, Arc<Provenance>)>,
}

/// A position in the live feed.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub struct FeedPosition(u64);

#[derive(Debug)]
struct Slot {
    published: Published,
    bytes: usize,
    /// How many subscribers have not read this slot yet.
    unread: usize,
}

#[derive(Clone, Debug)]
struct Published {
    /// Of the session that it is about, if there is one.
    from: Option<Arc<Provenance>>,
    content: Content,
}

#[derive(Clone, Debug)]
enum Content {
    Events(Arc<[Arc<Event>]>),
    Notice(Box<Notice>),
    /// For this viewer (a key's id, or the person) and for no one else.
    Arranged(Option<String>, Arc<Arranged>),
}

impl Hub {
    pub(crate) fn new() -> Self {
        Self {
            backlog: Arc::default(),
            news: Arc::new(watch::Sender::new(())),
        }
    }

    /// `from` belongs to the notice's session.
    pub(crate) fn publish(&self, from: &Arc<Provenance>, notice: Notice) {
        self.add(Some(from), Content::Notice(Box::new(notice)), EVENT_BYTES);
    }

    /// Publishes events of one session, in order.
    pub(crate) fn publish_events(&self, from: &Arc<Provenance>, events: Vec<Arc<Event>>) {
        if !events.is_empty() {
            let bytes = events.iter().map(|event| EVENT_BYTES + words(event)).sum();
            lock(&self.backlog).published += events.len() as u64;
            self.add(Some(from), Content::Events(events.into()), bytes);
        }
    }

    /// `viewer`: whose arrangement it is.
    pub(crate) fn publish_arranged(&self, viewer: Option<String>, arranged: Arranged) {
        self.add(None, Content::Arranged(viewer, Arc::new(arranged)), EVENT_BYTES);
    }

    fn add(&self, from: Option<&Arc<Provenance>>, content: Content, bytes: usize) {
        let from = from.cloned();
        lock(&self.backlog).add(Published { from, content }, bytes);
        self.news.send_replace(());
    }

    /// How many events were published so far.
    pub(crate) fn published(&self) -> u64 {
        lock(&self.backlog).published
    }

    pub(crate) fn feed_position(&self) -> FeedPosition {
        FeedPosition(lock(&self.backlog).end())
    }

    /// The sessions with notices since `mark` that the viewer may see.
    pub(crate) fn changed_since(&self, mark: FeedPosition, viewer: &Viewer) -> Vec<SessionId> {
        let backlog = lock(&self.backlog);
        let last = backlog.last.iter();
        last.filter(|(_, (place, from))| *place >= mark.0 && viewer.may_see(from))
            .map(|(session, _)| *session)
            .collect()
    }

    pub(crate) fn watch(&self, viewer: Viewer) -> LiveFeed {
        let news = self.news.subscribe();
        let mut backlog = lock(&self.backlog);
        backlog.readers += 1;
        LiveFeed {
            place: Place {
                next: backlog.end(),
                backlog: Arc::clone(&self.backlog),
            },
            news,
            viewer,
            batch: None,
        }
    }
}

impl Content {
    fn session(&self) -> Option<SessionId> {
        match self {
            Self::Events(events) => events.first().map(|event| event.session),
            Self::Notice(notice) => notice.session(),
            Self::Arranged(..) => None,
        }
    }
}

impl Backlog {
    /// The number of the next slot.
    fn end(&self) -> u64 {
        self.first + self.slots.len() as u64
    }

    fn add(&mut self, published: Published, bytes: usize) {
        if let (Some(session), Some(from)) = (published.content.session(), &published.from) {
            let place = (self.end(), Arc::clone(from));
            self.last.insert(session, place);
        }
        if self.readers == 0 {
            self.first += 1;
            return;
        }
        self.bytes += bytes;
        self.slots.push_back(Slot {
            published,
            bytes,
            unread: self.readers,
        });
        while self.bytes > BACKLOG_BYTES && self.slots.len() > 1 {
            self.forget_first();
        }
    }

    fn forget_first(&mut self) {
        if let Some(slot) = self.slots.pop_front() {
            self.bytes -= slot.bytes;
            self.first += 1;
        }
    }

    /// Marks slot `number` as read by one subscriber, if the slot is still in the backlog.
    fn read(&mut self, number: u64) -> Option<Published> {
        let index = usize::try_from(number.checked_sub(self.first)?).ok()?;
        let slot = self.slots.get_mut(index)?;
        slot.unread -= 1;
        let published = slot.published.clone();
        while self.slots.front().is_some_and(|slot| slot.unread == 0) {
            self.forget_first();
        }
        Some(published)
    }
}

fn lock(backlog: &Mutex<Backlog>) -> MutexGuard<'_, Backlog> {
    // The backlog is consistent between any two statements, so a panic elsewhere does not spoil it.
    backlog.lock().unwrap_or_else(PoisonError::into_inner)
}

fn words(event: &Event) -> usize {
    match &event.body {
        EventBody::Message { raw, .. } => raw.as_str().len(),
        EventBody::Unreadable(line) => line.line.len(),
        EventBody::DecisionRequested(request) => request.input.as_str().len(),
        EventBody::UserPrompt { prompt, .. } => prompt.text.len(),
        EventBody::Status(_) | EventBody::DecisionResolved { .. } => 0,
    }
}

/// The notices of all sessions that the viewer may see, from the subscription on.
#[derive(Debug)]
pub struct LiveFeed {
    place: Place,
    news: watch::Receiver<()>,
    viewer: Viewer,
    /// The notices that were read together, and how many of them were passed on.
    batch: Option<(Arc<[Arc<Event>]>, usize)>,
}

/// The position of a reader.
#[derive(Debug)]
struct Place {
    backlog: Arc<Mutex<Backlog>>,
    next: u64,
}

/// The subscriber was too slow: unread notices were dropped from memory and must be read from the log.
#[derive(Debug, thiserror::Error)]
#[error("the reader fell behind")]
pub struct Lagged;

impl LiveFeed {
    /// `None` when the server stops. Cancel-safe.
    pub async fn next(&mut self) -> Option<Result<Notice, Lagged>> {
        loop {
            // Subscribed before the backlog is read, so that a later notice wakes this task.
            self.news.mark_unchanged();
            if let Some(next) = self.try_next() {
                return Some(next);
            }
            self.news.changed().await.ok()?;
        }
    }

    /// The next notice, if there is one already.
    pub fn try_next(&mut self) -> Option<Result<Notice, Lagged>> {
        loop {
            if let Some((events, next)) = &mut self.batch {
                if let Some(event) = events.get(*next) {
                    *next += 1;
                    if !self.viewer.may_hear(event) {
                        continue;
                    }
                    return Some(Ok(Notice::Event(Arc::clone(event))));
                }
                self.batch = None;
            }
            match self.place.read()? {
                Ok(Published { from: Some(from), .. }) if !self.viewer.may_see(&from) => {}
                Ok(Published {
                    content: Content::Arranged(viewer, arranged),
                    ..
                }) => {
                    // The person sees everyone's sessions, but has an arrangement of their own, and so has every key.
                    if self.viewer.key == viewer && !self.viewer.only_decides() {
                        return Some(Ok(Notice::Arranged(arranged)));
                    }
                }
                Ok(published) => match published.content {
                    Content::Events(events) => self.batch = Some((events, 0)),
                    Content::Notice(notice)
                        if self.viewer.only_decides() && matches!(*notice, Notice::Queue { .. }) => {}
                    Content::Notice(notice) => return Some(Ok(*notice)),
                    Content::Arranged(..) => {}
                },
                Err(lagged) => return Some(Err(lagged)),
            }
        }
    }
}

impl Place {
    fn read(&mut self) -> Option<Result<Published, Lagged>> {
        let mut backlog = lock(&self.backlog);
        if self.next < backlog.first {
            // The rest of the batch is part of what must be read again.
            for number in backlog.first..backlog.end() {
                backlog.read(number);
            }
            self.next = backlog.end();
            return Some(Err(Lagged));
        }
        let published = backlog.read(self.next)?;
        self.next += 1;
        Some(Ok(published))
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut backlog = lock(&self.backlog);
        backlog.readers -= 1;
        for number in self.next..backlog.end() {
            backlog.read(number);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::Timestamp;
    use crate::json::RawJson;

    fn message(session: SessionId, seq: u64, length: usize) -> Arc<Event> {
        let raw = RawJson::parse(&format!("\"{}\"", "x".repeat(length))).unwrap();
        Arc::new(Event {
            session,
            seq,
            at: Timestamp(0),
            body: EventBody::Message { raw, uuid: None },
        })
    }

    fn seqs(feed: &mut LiveFeed) -> Vec<Option<u64>> {
        std::iter::from_fn(|| feed.try_next())
            .map(|notice| match notice {
                Ok(Notice::Event(event)) => Some(event.seq),
                Ok(other) => panic!("{other:?}"),
                Err(Lagged) => None,
            })
            .collect()
    }

    /// A session of the person at the machine.
    fn of(session: SessionId) -> Arc<Provenance> {
        Arc::new(Provenance {
            session,
            owner: None,
            cwd: "/".to_owned(),
        })
    }

    #[test]
    fn every_subscriber_gets_all_notices_in_order_and_the_backlog_empties() {
        let hub = Hub::new();
        let session = SessionId::random();
        hub.publish_events(&of(session), vec![message(session, 1, 1)]);
        let mut early = hub.watch(Viewer::PERSON);
        hub.publish_events(&of(session), vec![message(session, 2, 1), message(session, 3, 1)]);
        let mut late = hub.watch(Viewer::PERSON);
        hub.publish_events(&of(session), vec![message(session, 4, 1)]);
        assert_eq!(seqs(&mut early), [Some(2), Some(3), Some(4)]);
        assert_eq!(seqs(&mut late), [Some(4)]);
        let backlog = lock(&hub.backlog);
        assert_eq!((backlog.slots.len(), backlog.bytes), (0, 0));
    }

    #[test]
    fn a_dropped_subscriber_does_not_hold_the_backlog() {
        let hub = Hub::new();
        let session = SessionId::random();
        let (mut stays, goes) = (hub.watch(Viewer::PERSON), hub.watch(Viewer::PERSON));
        hub.publish_events(&of(session), vec![message(session, 1, 1)]);
        assert_eq!(seqs(&mut stays), [Some(1)]);
        assert_eq!(lock(&hub.backlog).slots.len(), 1);
        drop(goes);
        assert_eq!(lock(&hub.backlog).slots.len(), 0);
    }

    #[test]
    fn a_slow_subscriber_is_told_that_it_lags_and_the_backlog_stays_bounded() {
        let hub = Hub::new();
        let session = SessionId::random();
        let (mut slow, mut fast) = (hub.watch(Viewer::PERSON), hub.watch(Viewer::PERSON));
        for seq in 1..=40 {
            hub.publish_events(&of(session), vec![message(session, seq, 1024 * 1024)]);
            assert_eq!(seqs(&mut fast), [Some(seq)]);
            assert!(lock(&hub.backlog).bytes <= BACKLOG_BYTES);
        }
        assert_eq!(seqs(&mut slow), [None]);
        assert_eq!(lock(&hub.backlog).slots.len(), 0);
        hub.publish_events(&of(session), vec![message(session, 41, 1)]);
        assert_eq!(seqs(&mut slow), [Some(41)]);
    }

    #[test]
    fn changed_sessions_are_known_after_the_backlog_dropped_their_notices() {
        let hub = Hub::new();
        let [before, since, other] = [(); 3].map(|()| SessionId::random());
        hub.publish_events(&of(before), vec![message(before, 1, 1)]);
        let mark = hub.feed_position();
        assert_eq!(hub.changed_since(mark, &Viewer::PERSON), []);
        hub.publish_events(&of(since), vec![message(since, 1, 1)]);
        let of_key = Provenance {
            owner: Some("ci".to_owned()),
            ..(*of(other)).clone()
        };
        hub.publish(&Arc::new(of_key), Notice::Deleted(other));
        let viewer = Viewer {
            key: Some("ci".to_owned()),
            ..Viewer::PERSON
        };
        assert_eq!(hub.changed_since(mark, &viewer), [other]);
        let mut all = hub.changed_since(mark, &Viewer::PERSON);
        all.sort();
        let mut expected = [since, other];
        expected.sort();
        assert_eq!(all, expected);
        assert_eq!(hub.changed_since(hub.feed_position(), &Viewer::PERSON), []);
    }

    #[test]
    fn an_arrangement_is_told_to_its_viewer_alone() {
        use crate::arrangement::Sorting;
        use crate::rights::{Ceiling, Sees};
        let hub = Hub::new();
        let key = |name: &str, sees| Viewer {
            key: Some(name.to_owned()),
            ceiling: Some(Arc::new(Ceiling {
                sees,
                ..Ceiling::default()
            })),
            ..Viewer::PERSON
        };
        let viewers = [Viewer::PERSON, key("ci", Sees::Own), key("overseer", Sees::All)];
        let mut feeds = viewers.map(|viewer| hub.watch(viewer));
        for (viewer, told) in [
            (None, [1, 0, 0]),
            (Some("ci"), [0, 1, 0]),
            (Some("overseer"), [0, 0, 1]),
            (Some("revoked"), [0, 0, 0]),
        ] {
            hub.publish_arranged(viewer.map(str::to_owned), Arranged::Sorted(Sorting::Own));
            let heard = feeds
                .each_mut()
                .map(|feed| std::iter::from_fn(|| feed.try_next()).count());
            assert_eq!(heard, told, "{viewer:?}");
        }
    }
}
