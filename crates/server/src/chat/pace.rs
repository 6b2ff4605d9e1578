//! How fast a client may speak.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// Messages of one connection within a minute, at most.
const MESSAGES: usize = 60;
const WINDOW: Duration = Duration::from_mins(1);

/// Remembers when the latest messages came.
#[derive(Default)]
pub(super) struct Pace {
    taken: VecDeque<Instant>,
}

impl Pace {
    /// Takes one more message, or says how long to wait for that. What is refused is not counted.
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
    fn sixty_a_minute_are_taken_whenever_the_minute_begins() {
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
