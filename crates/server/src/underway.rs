//! What a connection has been asked for and is being done beside it. The connection's loop reads, tells and pings; it
//! never waits for a session, whose agent may hang and whose disk may be full. A request over HTTP waits, but may go away.
//!
//! Owns the order in which things are done, how much may be under way at once, and that whatever was taken is done whole,
//! also where nobody waits for it any more. Knows nothing of what it is that is done.

use std::collections::HashMap;
use std::sync::Arc;

use tiller_core::SessionId;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::task::JoinSet;

use crate::error::ApiError;

/// A frame takes one place for itself, and one for each of these that it is long: a few prompts with many images are as
/// much to keep as many short questions.
const PLACE_BYTES: usize = 1024 * 1024;

/// How many questions to one session may wait for their answers. An agent that hangs answers none for a minute, and must
/// not take all the room that there is for others.
const QUESTIONS: usize = 16;

/// When something is done.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Order {
    /// After the commands of its session that were taken before it. Those that are taken later wait for it.
    Command(SessionId),
    /// Likewise, but nothing waits for it.
    Question(SessionId),
    /// At once. Nothing waits for it.
    Beside,
}

/// The room that something takes until it has been answered.
#[derive(Debug, Default)]
pub(crate) struct Place {
    _permit: Option<OwnedSemaphorePermit>,
}

/// `T` is what comes of it.
pub(crate) struct Underway<T> {
    tasks: JoinSet<(T, Place)>,
    room: Arc<Semaphore>,
    /// The last command that was taken of each session. Nothing is ever sent: the channel closes when the command is done.
    last: HashMap<SessionId, watch::Receiver<()>>,
    /// Shared by the questions to each session.
    asked: HashMap<SessionId, Arc<()>>,
}

impl<T: Send + 'static> Underway<T> {
    pub(crate) fn new(places: usize) -> Self {
        Self {
            tasks: JoinSet::new(),
            room: Arc::new(Semaphore::new(places)),
            last: HashMap::new(),
            asked: HashMap::new(),
        }
    }

    /// Whether one more may be taken. Where not, what the client sends next has to wait, and is best left unread.
    pub(crate) fn has_room(&self) -> bool {
        self.room.available_permits() > 0
    }

    /// Whether a session may be asked one more question.
    pub(crate) fn may_ask(&self, session: SessionId) -> bool {
        let waiting = |asked: &Arc<()>| Arc::strong_count(asked) - 1;
        self.asked.get(&session).map_or(0, waiting) < QUESTIONS
    }

    /// Room for a frame of this length, or whatever is left.
    pub(crate) fn place(&self, length: usize) -> Place {
        let wanted = 1 + length / PLACE_BYTES;
        let places = u32::try_from(wanted.min(self.room.available_permits())).unwrap_or(u32::MAX);
        let permit = Arc::clone(&self.room).try_acquire_many_owned(places);
        Place { _permit: permit.ok() }
    }

    pub(crate) fn begin(
        &mut self,
        order: Order,
        place: Place,
        work: impl Future<Output = T> + Send + 'static,
    ) {
        let before = match order {
            Order::Command(session) | Order::Question(session) => self.last.get(&session).cloned(),
            Order::Beside => None,
        };
        let done = if let Order::Command(session) = order {
            let (done, last) = watch::channel(());
            self.last.retain(|_, last| last.has_changed().is_ok());
            self.last.insert(session, last);
            Some(done)
        } else {
            None
        };
        let asked = if let Order::Question(session) = order {
            self.asked.retain(|_, asked| Arc::strong_count(asked) > 1);
            Some(Arc::clone(self.asked.entry(session).or_default()))
        } else {
            None
        };
        self.tasks.spawn(async move {
            if let Some(mut before) = before {
                while before.changed().await.is_ok() {}
            }
            let outcome = work.await;
            drop((done, asked));
            (outcome, place)
        });
    }

    /// The next thing that is done; `None` if it failed in a way that nobody has thought of. Never returns where nothing is
    /// under way. May be dropped and called again.
    pub(crate) async fn next(&mut self) -> Option<(T, Place)> {
        match self.tasks.join_next().await {
            Some(Ok(done)) => Some(done),
            Some(Err(error)) => {
                tracing::error!(%error, "a command broke off");
                None
            }
            None => std::future::pending().await,
        }
    }

    /// Waits for the end of everything, in place of a client that is gone.
    pub(crate) async fn finish(mut self) {
        while self.tasks.join_next().await.is_some() {}
    }
}

/// Does something to its end, also if the caller is dropped in the middle, as the handler of a request is when its client
/// goes away.
pub(crate) async fn whole<T: Send + 'static>(
    work: impl Future<Output = T> + Send + 'static,
) -> Result<T, ApiError> {
    let done = tokio::spawn(work).await;
    done.map_err(|error| ApiError::internal(&error))
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use tokio::sync::oneshot;

    use super::*;

    fn is_idle(underway: &mut Underway<u32>) -> bool {
        futures_util::FutureExt::now_or_never(underway.next()).is_none()
    }

    async fn next(underway: &mut Underway<u32>) -> u32 {
        underway.next().await.unwrap().0
    }

    #[tokio::test]
    async fn only_commands_of_the_same_session_are_waited_for() {
        let mut underway = Underway::new(8);
        let (stuck, other) = (SessionId::random(), SessionId::random());
        let (go, gone) = oneshot::channel::<()>();
        let wait = async move {
            gone.await.unwrap();
            1
        };
        underway.begin(Order::Command(stuck), Place::default(), wait);
        underway.begin(Order::Command(stuck), Place::default(), async { 2 });
        underway.begin(Order::Question(stuck), Place::default(), async { 3 });
        underway.begin(Order::Command(other), Place::default(), async { 4 });
        assert_eq!(next(&mut underway).await, 4);
        underway.begin(Order::Beside, Place::default(), async { 5 });
        assert_eq!(next(&mut underway).await, 5);
        tokio::task::yield_now().await;
        assert!(is_idle(&mut underway));
        go.send(()).unwrap();
        assert_eq!(next(&mut underway).await, 1);
        assert_eq!(next(&mut underway).await, 2);
        assert_eq!(next(&mut underway).await, 3);
    }

    #[tokio::test]
    async fn nothing_waits_for_a_question() {
        let mut underway = Underway::new(8);
        let session = SessionId::random();
        underway.begin(Order::Question(session), Place::default(), std::future::pending());
        underway.begin(Order::Command(session), Place::default(), async { 1 });
        assert_eq!(next(&mut underway).await, 1);
    }

    #[tokio::test]
    async fn a_session_that_answers_nothing_is_asked_no_more() {
        let mut underway = Underway::new(64);
        let (hangs, other) = (SessionId::random(), SessionId::random());
        let (go, gone) = oneshot::channel::<()>();
        let wait = async move {
            gone.await.unwrap();
            1
        };
        underway.begin(Order::Question(hangs), Place::default(), wait);
        for _ in 1..QUESTIONS {
            assert!(underway.may_ask(hangs));
            underway.begin(Order::Question(hangs), Place::default(), std::future::pending());
        }
        assert!(!underway.may_ask(hangs));
        assert!(underway.may_ask(other));
        go.send(()).unwrap();
        assert_eq!(next(&mut underway).await, 1);
        assert!(underway.may_ask(hangs));
    }

    #[tokio::test]
    async fn room_is_taken_until_the_answer_is_given_and_long_frames_take_more_of_it() {
        let mut underway = Underway::new(4);
        let place = underway.place(0);
        underway.begin(Order::Beside, place, async { 1 });
        assert!(underway.has_room());
        let long = underway.place(100 * PLACE_BYTES);
        assert!(!underway.has_room());
        drop(long);
        let three = underway.place(2 * PLACE_BYTES);
        assert!(!underway.has_room());
        let done = underway.next().await.unwrap();
        assert!(!underway.has_room());
        drop(done);
        assert!(underway.has_room());
        drop(three);
    }

    #[tokio::test]
    async fn what_was_taken_is_done_in_order_when_nobody_waits_any_more() {
        let mut underway = Underway::new(8);
        let session = SessionId::random();
        let done = Arc::new(Mutex::new(Vec::new()));
        for number in 1..=3 {
            let done = Arc::clone(&done);
            underway.begin(Order::Command(session), Place::default(), async move {
                tokio::task::yield_now().await;
                done.lock().unwrap().push(number);
                number
            });
        }
        underway.finish().await;
        assert_eq!(*done.lock().unwrap(), [1, 2, 3]);
    }
}
