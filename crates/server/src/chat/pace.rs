//! The rate limit of a chat connection.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// The maximum number of messages of one connection within a minute.
const MESSAGES: usize = 60;
const WINDOW: Duration = Duration::from_mins(1);

/// The times of the latest messages.
#[derive(Default)]
pub(super) struct Pace {
    taken: VecDeque<Instant>,
}

impl Pace {
    /// Counts a message, or returns how long to wait. A refused message is not counted.
    pub(super) fn take(&mut self, now: Instant) -> Result<(), Duration> {
        let is_old = |at: &Instant| now.duration_since(*at) >= WINDOW;
        while self.taken.front().is_some_and(is_old) {
            self.taken.pop_front();
        }
        match self.taken.front() {
            Some(first) if self.taken.len() >= MESSAGES => {
                Err(WINDOW.saturating_sub(now.duration_since(*first)))
            }
            _ => {
                self.taken.push_back(now);
                Ok(())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sixty_messages_are_accepted_in_any_minute() {
        let mut pace = Pace::default();
        let start = Instant::now();
        let at = |seconds| start + Duration::from_secs(seconds);
        for second in 0..60 {
            assert_eq!(pace.take(at(second / 2)), Ok(()));
        }
        assert_eq!(pace.take(at(30)), Err(Duration::from_secs(30)));
        assert_eq!(pace.take(at(59)), Err(Duration::from_secs(1)));
        // Two came in the first second, so two are free after a minute.
        assert_eq!(pace.take(at(60)), Ok(()));
        assert_eq!(pace.take(at(60)), Ok(()));
        assert!(pace.take(at(60)).is_err());
    }
}
