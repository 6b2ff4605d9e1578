//! Rate limits per address.
//!
//! A fixed window and not governor's cell rate: ten in a minute means that the eleventh is refused however slowly the
//! ten came, whereas a cell rate lets one more in every six seconds. ARCHITECTURE.md has the comparison.

use std::collections::HashMap;
use std::hash::Hash;
use std::net::IpAddr;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Counts events for each address, or for each of something else, in a window that begins with its first event.
pub(crate) struct Tally<K = IpAddr> {
    limit: u32,
    window: Duration,
    counts: Mutex<HashMap<K, (Instant, u32)>>,
}

/// Who is counted.
pub(crate) trait Counted: Eq + Hash {
    /// What counts as one.
    #[must_use]
    fn group(self) -> Self;
}

impl Counted for IpAddr {
    /// A subscriber has a whole IPv6 /64.
    fn group(self) -> Self {
        group(self)
    }
}

impl Counted for String {
    fn group(self) -> Self {
        self
    }
}

/// How many addresses are remembered. Finished windows are dropped first, then the oldest: an attacker with that many
/// addresses needs no more tries from each.
const ADDRESSES: usize = 4096;

impl<K: Counted> Tally<K> {
    pub(crate) fn new(limit: u32, window: Duration) -> Self {
        Self {
            limit,
            window,
            counts: Mutex::new(HashMap::new()),
        }
    }

    /// Counts an event. False if the limit is exceeded.
    pub(crate) fn count(&self, who: K, now: Instant) -> bool {
        let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        if counts.len() >= ADDRESSES {
            counts.retain(|_, (since, _)| now.duration_since(*since) < self.window);
            forget_half(&mut counts);
        }
        let (since, count) = counts.entry(who.group()).or_insert((now, 0));
        if now.duration_since(*since) >= self.window {
            (*since, *count) = (now, 0);
        }
        *count = count.saturating_add(1);
        *count <= self.limit
    }

    /// How long an address that exceeded the limit has to wait.
    pub(crate) fn wait(&self, who: K, now: Instant) -> Duration {
        let counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        let since = counts.get(&who.group()).map(|(since, _)| *since);
        since.map_or(Duration::ZERO, |since| {
            self.window.saturating_sub(now.duration_since(since))
        })
    }
}

/// Drops the older half if there are still too many: half, so that this does not happen for every new address.
fn forget_half<K: Eq + Hash>(counts: &mut HashMap<K, (Instant, u32)>) {
    if counts.len() < ADDRESSES {
        return;
    }
    let mut begun: Vec<Instant> = counts.values().map(|(since, _)| *since).collect();
    let middle = begun.len() / 2;
    let (_, middle, _) = begun.select_nth_unstable(middle);
    let middle = *middle;
    let mut left = ADDRESSES / 2;
    counts.retain(|_, (since, _)| {
        let kept = *since >= middle && left > 0;
        left -= usize::from(kept);
        kept
    });
}

/// The part of an address that counts as one client: one subscriber has a whole IPv6 /64.
pub(crate) fn group(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => IpAddr::V6((address.to_bits() & !u128::from(u64::MAX)).into()),
        v4 @ IpAddr::V4(_) => v4,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tries_are_counted_for_each_address_and_forgotten() {
        let tally: Tally = Tally::new(2, Duration::from_mins(1));
        let now = Instant::now();
        let (one, other) = ("127.0.0.1".parse().unwrap(), "127.0.0.2".parse().unwrap());
        assert!(tally.count(one, now) && tally.count(one, now));
        assert!(!tally.count(one, now));
        assert!(tally.count(other, now));
        let later = now + Duration::from_secs(20);
        assert_eq!(tally.wait(one, later), Duration::from_secs(40));
        assert!(tally.count(one, now + Duration::from_mins(1)));
    }

    #[test]
    fn memory_stays_bounded_with_many_addresses_and_the_newest_are_counted() {
        let tally: Tally = Tally::new(1, Duration::from_mins(1));
        let begin = Instant::now();
        let address = |number: u32| IpAddr::from(number.to_be_bytes());
        for number in 0..3 * 4096 {
            let now = begin + Duration::from_millis(number.into());
            assert!(tally.count(address(number), now));
            assert!(!tally.count(address(number), now));
        }
        assert!(tally.counts.lock().unwrap().len() <= ADDRESSES);
        let at_once = Tally::new(1, Duration::from_mins(1));
        for number in 0..3 * 4096 {
            at_once.count(address(number), begin);
        }
        assert!(at_once.counts.lock().unwrap().len() <= ADDRESSES);
    }

    #[test]
    fn ten_in_a_minute_are_ten_however_slowly_they_arrive() {
        let tally: Tally = Tally::new(10, Duration::from_mins(1));
        let (begin, one) = (Instant::now(), "127.0.0.1".parse().unwrap());
        let passed = (0..60).filter(|second| tally.count(one, begin + Duration::from_secs(*second)));
        assert_eq!(passed.count(), 10);
    }

    #[test]
    fn one_ipv6_network_is_one_address() {
        let tally: Tally = Tally::new(1, Duration::from_mins(1));
        let now = Instant::now();
        assert!(tally.count("2001:db8::1".parse().unwrap(), now));
        assert!(!tally.count("2001:db8::2".parse().unwrap(), now));
        assert!(tally.count("2001:db8:0:1::1".parse().unwrap(), now));
        assert!(tally.count("::ffff:10.0.0.1".parse().unwrap(), now));
        assert!(!tally.count("10.0.0.1".parse().unwrap(), now));
    }
}
