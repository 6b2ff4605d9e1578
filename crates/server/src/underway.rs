//! Commands that run beside their connection's loop. The loop reads, sends and pings; it never waits for a session,
//! whose agent may hang and whose disk may be full. An HTTP request waits, but its client may disconnect.
//!
//! Owns the order of the commands and their limit, and runs each to its end even if nobody waits for it any more. It
//! does not know what the commands do.

use std::collections::HashMap;
use std::sync::Arc;

use tiller_core::SessionId;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::task::JoinSet;

use crate::error::ApiError;

/// A frame takes one place, plus one for each megabyte of its length: a few prompts with many images need as much
/// memory as many short questions.
const PLACE_BYTES: usize = 1024 * 1024;

/// How many questions to one session may be pending. An agent that hangs answers none for a minute, and must not use up
/// the places of others.
const QUESTIONS: usize = 16;

/// When a command runs.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Order {
    /// After the earlier commands of its session. Later ones wait for it.
    Command(SessionId),
    /// After the earlier commands of its session, but nothing waits for it.
    Question(SessionId),
    /// At once. Nothing waits for it.
    Beside,
}

/// The share of the limit that a command takes until it has been answered.
#[derive(Debug, Default)]
pub(crate) struct Place {
    _permit: Option<OwnedSemaphorePermit>,
}

/// `T` is the outcome of a command.
pub(crate) struct Underway<T> {
    tasks: JoinSet<(T, Place)>,
    room: Arc<Semaphore>,
    /// The last command of each session. Nothing is ever sent: the channel closes when the command is done.
    last: HashMap<SessionId, watch::Receiver<()>>,
    /// Limits the questions to each session.
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

    /// Whether another command may begin. If not, the client's next frame is best left unread.
    pub(crate) fn has_room(&self) -> bool {
        self.room.available_permits() > 0
    }

    /// Whether a session may be asked one more question.
    pub(crate) fn may_ask(&self, session: SessionId) -> bool {
        let waiting = |asked: &Arc<()>| Arc::strong_count(asked) - 1;
        self.asked.get(&session).map_or(0, waiting) < QUESTIONS
    }

    /// A place for a frame of this length, or as much as is left.
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

    /// The next outcome; `None` if a command panicked. Never returns if no command is running. Cancel-safe.
    pub(crate) async fn next(&mut self) -> Option<(T, Place)> {
        match self.tasks.join_next().await {
            Some(Ok(done)) => Some(done),
            Some(Err(error)) => {
                tracing::error!(%error, "a command panicked");
                None
            }
            None => std::future::pending().await,
        }
    }

    /// Waits for all commands, in place of a client that has disconnected.
    pub(crate) async fn finish(mut self) {
        while self.tasks.join_next().await.is_some() {}
    }
}

/// Runs a future to its end, even if the caller is dropped, as the handler of a request is when its client disconnects.
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
    async fn a_command_waits_only_for_commands_of_its_session() {
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
    async fn a_session_with_too_many_pending_questions_is_not_asked_more() {
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
    async fn a_place_is_taken_until_the_answer_and_long_frames_take_more() {
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
    async fn commands_run_in_order_to_their_end_when_nobody_waits() {
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
