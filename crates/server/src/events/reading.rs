//! The reads of one session's log for a client, and the notices that are held back meanwhile: a client gets a session's
//! events in order, whatever is read beside the loop that sends them.
//!
//! Live events are not held back themselves: they are in the log and are read from there later. Pure; the connection
//! reads and sends.

use std::collections::VecDeque;

use tiller_core::{Notice, Page};

use super::request::{Origin, Request};

/// How many notices that are not in the log may be held back. If there are more, something is stuck and the client has
/// to ask again.
const KEPT: usize = 256;

/// A read that a client asked for.
#[derive(Debug)]
pub(super) enum Read {
    /// The log after this event, and then live.
    Replay {
        after: u64,
        /// The missed output of the session's agent is recorded, so the end of the log is final.
        certain: bool,
    },
    History(Page),
}

/// What the connection has to do next.
#[derive(Debug)]
pub(super) enum Next {
    /// Read this, for the frame that asked for it.
    Read(Read, Origin),
    /// Read the log after this event: later events were not sent.
    CatchUp {
        after: u64,
    },
    Tell(Vec<Notice>),
    /// Nothing, until a pending read has finished.
    Wait,
    /// Nothing more to read.
    Over,
    /// Nothing more to read, but some notices were lost: the client has to ask again.
    Lagged,
}

/// How the client receives the session.
#[derive(Clone, Copy, Debug)]
pub(super) enum Subscription {
    None,
    /// Live, without a gap so far.
    Live,
    /// It has everything up to this event, and receives later ones.
    After(u64),
}

#[derive(Debug, Default)]
pub(super) struct Reading {
    asked: VecDeque<(Read, Request)>,
    under_way: Option<Stage>,
    /// The first and the last event that were not sent and may be missing from the current read.
    missed: Option<(u64, u64)>,
    /// The current read must include events that were not sent.
    owes: bool,
    kept: Vec<Notice>,
    /// The held notices begin with the session's deletion: nothing later may be sent before it.
    ended: bool,
    lagged: bool,
}

#[derive(Debug)]
enum Stage {
    /// The session is being started; the client gets `session.started` before its events.
    Begins,
    /// The read waits for its turn among the connection's commands.
    Asked(Request),
    CatchesUp,
}

impl Reading {
    /// Holds back a session that is about to start.
    pub(super) fn of_starting_session() -> Self {
        Self {
            under_way: Some(Stage::Begins),
            ..Self::default()
        }
    }

    pub(super) fn ask(&mut self, read: Read, request: Request) {
        self.asked.push_back((read, request));
    }

    /// Something happened in the session.
    pub(super) fn keep_back(&mut self, notice: Notice) {
        match notice {
            Notice::Event(event) => {
                let first = self.missed.map_or(event.seq, |(first, _)| first);
                self.missed = Some((first, event.seq));
            }
            Notice::Deleted(_) => {
                self.kept = vec![notice];
                (self.missed, self.owes, self.ended) = (None, false, true);
            }
            other if self.kept.len() < KEPT => self.kept.push(other),
            _ => self.lag(),
        }
    }

    /// A notice was lost.
    pub(super) fn lag(&mut self) {
        self.lagged = true;
    }

    pub(super) fn next(&mut self, subscription: Subscription) -> Next {
        if self.under_way.is_some() {
            return Next::Wait;
        }
        if let Some((read, request)) = self.asked.pop_front() {
            let origin = request.origin.clone();
            self.under_way = Some(Stage::Asked(request));
            return Next::Read(read, origin);
        }
        if self.ended {
            self.ended = false;
            return Next::Tell(std::mem::take(&mut self.kept));
        }
        let (first, last) = self.missed.unwrap_or_default();
        let after = match subscription {
            Subscription::None => return Next::Over,
            // Events before the first unsent one were sent live.
            Subscription::Live => first.saturating_sub(1),
            Subscription::After(seen) => seen,
        };
        if self.lagged {
            return Next::Lagged;
        }
        if last > after {
            self.under_way = Some(Stage::CatchesUp);
            return Next::CatchUp { after };
        }
        if self.kept.is_empty() {
            Next::Over
        } else {
            Next::Tell(std::mem::take(&mut self.kept))
        }
    }

    /// The log is about to be read: earlier events are in it.
    pub(super) fn page_begins(&mut self) {
        self.owes |= self.missed.take().is_some();
    }

    /// The log was read to its end. Returns the frame that asked for it, if any.
    pub(super) fn page_ended(&mut self) -> Option<Origin> {
        self.owes = false;
        match self.under_way.take() {
            Some(Stage::Asked(request)) => Some(request.origin),
            Some(Stage::Begins | Stage::CatchesUp) | None => None,
        }
    }

    /// A read of something else than the log finished, or the session was started.
    pub(super) fn finished(&mut self) {
        self.under_way = None;
    }

    /// The log can't be read. Returns the frame that asked for it, if any, so that its sender gets an error.
    pub(super) fn failed(&mut self) -> Option<Origin> {
        self.lagged |= std::mem::take(&mut self.owes);
        match self.under_way.take() {
            Some(Stage::Asked(request)) => Some(request.origin),
            Some(Stage::Begins | Stage::CatchesUp) | None => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use tiller_core::{Event, EventBody, RawJson, SessionId, Timestamp};

    use super::super::table::ClientEvent;
    use super::*;
    use crate::underway::Place;

    fn request() -> Request {
        let row = &ClientEvent::ROWS[0];
        Request {
            origin: Origin {
                command: None,
                session: None,
                row,
            },
            place: Place::default(),
        }
    }

    fn event(seq: u64) -> Notice {
        let raw = RawJson::parse("{}").unwrap();
        Notice::Event(Arc::new(Event {
            session: SessionId::random(),
            seq,
            at: Timestamp(0),
            body: EventBody::Message { raw, uuid: None },
        }))
    }

    fn updated() -> Notice {
        Notice::Updated(SessionId::random())
    }

    fn replaying(after: u64) -> Reading {
        let mut reading = Reading::default();
        let certain = true;
        reading.ask(Read::Replay { after, certain }, request());
        assert!(matches!(
            reading.next(Subscription::Live),
            Next::Read(Read::Replay { .. }, _)
        ));
        reading.page_begins();
        reading
    }

    #[test]
    fn events_during_the_last_page_are_read_before_other_notices_are_sent() {
        let mut reading = replaying(0);
        reading.keep_back(event(8));
        reading.keep_back(updated());
        reading.keep_back(event(9));
        assert!(matches!(reading.next(Subscription::After(0)), Next::Wait));
        // The page had up to the eighth.
        reading.page_ended();
        assert!(matches!(
            reading.next(Subscription::After(8)),
            Next::CatchUp { after: 8 }
        ));
        reading.page_begins();
        reading.page_ended();
        assert!(matches!(reading.next(Subscription::After(9)), Next::Tell(notices) if notices.len() == 1));
        assert!(matches!(reading.next(Subscription::After(9)), Next::Over));
    }

    #[test]
    fn events_that_the_page_had_are_not_read_again() {
        let mut reading = replaying(0);
        reading.keep_back(event(8));
        reading.page_ended();
        assert!(matches!(reading.next(Subscription::After(8)), Next::Over));
    }

    #[test]
    fn a_compacted_event_is_not_waited_for() {
        let mut reading = replaying(0);
        reading.keep_back(event(8));
        reading.page_ended();
        assert!(matches!(
            reading.next(Subscription::After(7)),
            Next::CatchUp { after: 7 }
        ));
        reading.page_begins();
        reading.page_ended();
        assert!(matches!(reading.next(Subscription::After(7)), Next::Over));
    }

    #[test]
    fn a_client_without_a_subscription_continues_with_its_first_unsent_event() {
        let mut reading = Reading::default();
        reading.ask(Read::History(Page::All), request());
        assert!(matches!(
            reading.next(Subscription::Live),
            Next::Read(Read::History(_), _)
        ));
        reading.keep_back(event(5));
        reading.keep_back(event(6));
        reading.finished();
        assert!(matches!(
            reading.next(Subscription::Live),
            Next::CatchUp { after: 4 }
        ));
    }

    #[test]
    fn reads_are_executed_one_at_a_time() {
        let mut reading = replaying(0);
        reading.ask(Read::History(Page::All), request());
        assert!(matches!(reading.next(Subscription::Live), Next::Wait));
        reading.keep_back(event(3));
        reading.page_ended();
        assert!(matches!(
            reading.next(Subscription::After(2)),
            Next::Read(Read::History(_), _)
        ));
        reading.finished();
        assert!(matches!(
            reading.next(Subscription::After(2)),
            Next::CatchUp { after: 2 }
        ));
    }

    #[test]
    fn failed_reads_and_lost_notices_make_the_client_ask_again() {
        let mut reading = replaying(0);
        assert!(reading.failed().is_some());
        assert!(
            matches!(reading.next(Subscription::Live), Next::Over),
            "nothing was missed"
        );

        let mut reading = replaying(0);
        reading.keep_back(event(1));
        reading.page_begins();
        assert!(reading.failed().is_some());
        assert!(matches!(reading.next(Subscription::Live), Next::Lagged));

        let mut reading = replaying(0);
        for _ in 0..=KEPT {
            reading.keep_back(updated());
        }
        reading.page_ended();
        assert!(matches!(reading.next(Subscription::Live), Next::Lagged));
    }

    #[test]
    fn a_session_that_is_deleted_and_started_again_stays_in_order() {
        let mut reading = replaying(0);
        reading.keep_back(event(7));
        reading.keep_back(updated());
        reading.keep_back(Notice::Deleted(SessionId::random()));
        reading.keep_back(event(1));
        assert!(reading.failed().is_some());
        assert!(
            matches!(&reading.next(Subscription::After(6)), Next::Tell(told) if matches!(told[..], [Notice::Deleted(_)]))
        );
        assert!(matches!(
            reading.next(Subscription::Live),
            Next::CatchUp { after: 0 }
        ));
    }

    #[test]
    fn a_refused_subscriber_gets_no_events() {
        let mut reading = replaying(0);
        reading.keep_back(event(1));
        reading.keep_back(updated());
        assert!(reading.failed().is_some());
        assert!(matches!(reading.next(Subscription::None), Next::Over));
    }

    #[test]
    fn a_starting_session_is_held_back_until_it_has_started() {
        let mut reading = Reading::of_starting_session();
        reading.keep_back(event(1));
        reading.keep_back(event(2));
        assert!(matches!(reading.next(Subscription::Live), Next::Wait));
        reading.finished();
        assert!(matches!(
            reading.next(Subscription::Live),
            Next::CatchUp { after: 0 }
        ));
    }
}
