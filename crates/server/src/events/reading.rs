//! What is read of one session for a client, and what is kept back of it meanwhile: what is told of a session keeps its
//! order, whatever is read beside the loop that tells it.
//!
//! Events that come live are not kept: they are in the log, and are read from there once their turn has come. Pure; the
//! connection reads and tells.

use std::collections::VecDeque;

use tiller_core::{Notice, Page};

use super::request::{Origin, Request};

/// How many notices that are not in the log may be kept back. More means that something is stuck; the client then asks
/// again.
const KEPT: usize = 256;

/// What a client wants to read.
#[derive(Debug)]
pub(super) enum Read {
    /// The log after this event, and then live.
    Replay {
        after: u64,
        /// It is known what an agent said while no server was there, so the log's end is the end.
        certain: bool,
    },
    History(Page),
}

/// What is to be done next.
#[derive(Debug)]
pub(super) enum Next {
    /// With the frame that asked for it.
    Read(Read, Origin),
    /// To read the log after this event: what has come since was not told.
    CatchUp {
        after: u64,
    },
    Tell(Vec<Notice>),
    /// Nothing, until what is under way has come.
    Wait,
    /// There is nothing more to read.
    Over,
    /// Likewise, but not everything could be kept back: the client has to ask again.
    Lagged,
}

/// What a client hears of the session.
#[derive(Clone, Copy, Debug)]
pub(super) enum Hears {
    Nothing,
    /// What comes live, and has done so up to now.
    Live,
    /// It has everything up to this event, and hears what comes after.
    After(u64),
}

#[derive(Debug, Default)]
pub(super) struct Reading {
    asked: VecDeque<(Read, Request)>,
    under_way: Option<Stage>,
    /// The first and the last event that were not told, of those that are not sure to be in what is being read.
    missed: Option<(u64, u64)>,
    /// What is being read has to have events that were not told.
    owes: bool,
    kept: Vec<Notice>,
    /// What was kept begins with the session's end: nothing of what comes after may be told before.
    ended: bool,
    lagged: bool,
}

#[derive(Debug)]
enum Stage {
    /// The session begins, and the client is told which one it is before anything else.
    Begins,
    /// Keeps its place among what the connection has under way.
    Asked(Request),
    CatchesUp,
}

impl Reading {
    /// Keeps a session back that is about to begin.
    pub(super) fn of_one_that_begins() -> Self {
        Self {
            under_way: Some(Stage::Begins),
            ..Self::default()
        }
    }

    pub(super) fn ask(&mut self, read: Read, request: Request) {
        self.asked.push_back((read, request));
    }

    /// Something has happened in the session.
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

    /// Something has happened and is lost.
    pub(super) fn lag(&mut self) {
        self.lagged = true;
    }

    pub(super) fn next(&mut self, hears: Hears) -> Next {
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
        let after = match hears {
            Hears::Nothing => return Next::Over,
            // What came before the first was told when it came.
            Hears::Live => first.saturating_sub(1),
            Hears::After(seen) => seen,
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

    /// The log is about to be read: what has come before is in there.
    pub(super) fn begins_a_page(&mut self) {
        self.owes |= self.missed.take().is_some();
    }

    /// The log was read to its end. Returns the frame that asked for it, if a client did.
    pub(super) fn reached_the_end(&mut self) -> Option<Origin> {
        self.owes = false;
        match self.under_way.take() {
            Some(Stage::Asked(request)) => Some(request.origin),
            Some(Stage::Begins | Stage::CatchesUp) | None => None,
        }
    }

    /// Something else than the log was read, or the session has begun.
    pub(super) fn is_done(&mut self) {
        self.under_way = None;
    }

    /// The log can't be read. Returns the frame that asked for it, if a client did, so that the client is told.
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
            reading.next(Hears::Live),
            Next::Read(Read::Replay { .. }, _)
        ));
        reading.begins_a_page();
        reading
    }

    #[test]
    fn what_came_during_the_last_page_is_read_before_anything_else_is_told() {
        let mut reading = replaying(0);
        reading.keep_back(event(8));
        reading.keep_back(updated());
        reading.keep_back(event(9));
        assert!(matches!(reading.next(Hears::After(0)), Next::Wait));
        // The page had up to the eighth.
        reading.reached_the_end();
        assert!(matches!(
            reading.next(Hears::After(8)),
            Next::CatchUp { after: 8 }
        ));
        reading.begins_a_page();
        reading.reached_the_end();
        assert!(matches!(reading.next(Hears::After(9)), Next::Tell(notices) if notices.len() == 1));
        assert!(matches!(reading.next(Hears::After(9)), Next::Over));
    }

    #[test]
    fn what_the_page_had_already_is_not_read_again() {
        let mut reading = replaying(0);
        reading.keep_back(event(8));
        reading.reached_the_end();
        assert!(matches!(reading.next(Hears::After(8)), Next::Over));
    }

    #[test]
    fn an_event_that_is_no_longer_in_the_log_is_not_waited_for() {
        let mut reading = replaying(0);
        reading.keep_back(event(8));
        reading.reached_the_end();
        assert!(matches!(
            reading.next(Hears::After(7)),
            Next::CatchUp { after: 7 }
        ));
        reading.begins_a_page();
        reading.reached_the_end();
        assert!(matches!(reading.next(Hears::After(7)), Next::Over));
    }

    #[test]
    fn a_client_that_never_subscribed_goes_on_with_the_first_that_it_was_not_told() {
        let mut reading = Reading::default();
        reading.ask(Read::History(Page::All), request());
        assert!(matches!(
            reading.next(Hears::Live),
            Next::Read(Read::History(_), _)
        ));
        reading.keep_back(event(5));
        reading.keep_back(event(6));
        reading.is_done();
        assert!(matches!(reading.next(Hears::Live), Next::CatchUp { after: 4 }));
    }

    #[test]
    fn reads_are_done_one_after_the_other() {
        let mut reading = replaying(0);
        reading.ask(Read::History(Page::All), request());
        assert!(matches!(reading.next(Hears::Live), Next::Wait));
        reading.keep_back(event(3));
        reading.reached_the_end();
        assert!(matches!(
            reading.next(Hears::After(2)),
            Next::Read(Read::History(_), _)
        ));
        reading.is_done();
        assert!(matches!(
            reading.next(Hears::After(2)),
            Next::CatchUp { after: 2 }
        ));
    }

    #[test]
    fn what_could_not_be_read_or_kept_is_asked_for_again() {
        let mut reading = replaying(0);
        assert!(reading.failed().is_some());
        assert!(
            matches!(reading.next(Hears::Live), Next::Over),
            "nothing was missed"
        );

        let mut reading = replaying(0);
        reading.keep_back(event(1));
        reading.begins_a_page();
        assert!(reading.failed().is_some());
        assert!(matches!(reading.next(Hears::Live), Next::Lagged));

        let mut reading = replaying(0);
        for _ in 0..=KEPT {
            reading.keep_back(updated());
        }
        reading.reached_the_end();
        assert!(matches!(reading.next(Hears::Live), Next::Lagged));
    }

    #[test]
    fn a_session_that_ends_and_begins_again_does_so_in_this_order() {
        let mut reading = replaying(0);
        reading.keep_back(event(7));
        reading.keep_back(updated());
        reading.keep_back(Notice::Deleted(SessionId::random()));
        reading.keep_back(event(1));
        assert!(reading.failed().is_some());
        assert!(
            matches!(&reading.next(Hears::After(6)), Next::Tell(told) if matches!(told[..], [Notice::Deleted(_)]))
        );
        assert!(matches!(reading.next(Hears::Live), Next::CatchUp { after: 0 }));
    }

    #[test]
    fn a_refused_subscriber_gets_no_events() {
        let mut reading = replaying(0);
        reading.keep_back(event(1));
        reading.keep_back(updated());
        assert!(reading.failed().is_some());
        assert!(matches!(reading.next(Hears::Nothing), Next::Over));
    }

    #[test]
    fn a_session_that_begins_is_kept_back_until_it_has() {
        let mut reading = Reading::of_one_that_begins();
        reading.keep_back(event(1));
        reading.keep_back(event(2));
        assert!(matches!(reading.next(Hears::Live), Next::Wait));
        reading.is_done();
        assert!(matches!(reading.next(Hears::Live), Next::CatchUp { after: 0 }));
    }
}
