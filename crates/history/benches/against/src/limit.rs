//! Rate limits per address: the server's counter and governor.

use std::hint::black_box;
use std::net::{IpAddr, Ipv4Addr};
use std::num::NonZeroU32;
use std::time::{Duration, Instant};

use governor::clock::FakeRelativeClock;
use governor::{Quota, RateLimiter};

use crate::{measured, resident_bytes};

#[path = "../../../../server/src/limit.rs"]
#[allow(dead_code, reason = "the benchmark uses a part of the server's file")]
mod ours;

pub(crate) const TASKS: [&str; 2] = ["limit: ours", "limit: governor"];

const ADDRESSES: u32 = 200_000;
const CHECKS: u32 = 5_000_000;
const MINUTE: Duration = Duration::from_secs(60);

fn address(number: u32) -> IpAddr {
    Ipv4Addr::from(number.wrapping_mul(2_654_435_761)).into()
}

pub(crate) fn run(task: &str) {
    if task == "limit: ours" {
        let now = Instant::now();
        let tally = ours::Tally::new(10, MINUTE);
        report(task, |address| tally.count(address, now));
        let tally = ours::Tally::new(10, MINUTE);
        behaviour(|second| tally.count(address(1), now + Duration::from_secs(second)));
    } else {
        let quota = Quota::per_minute(NonZeroU32::new(10).expect("not zero"));
        let limiter = RateLimiter::keyed(quota);
        report(task, |address| limiter.check_key(&address).is_ok());
        let clock = FakeRelativeClock::default();
        let limiter = RateLimiter::dashmap_with_clock(quota, clock.clone());
        let mut last = 0;
        behaviour(|second| {
            clock.advance(Duration::from_secs(second - last));
            last = second;
            limiter.check_key(&address(1)).is_ok()
        });
    }
}

fn report(task: &str, mut check: impl FnMut(IpAddr) -> bool) {
    let before = resident_bytes();
    for number in 0..ADDRESSES {
        black_box(check(address(number)));
    }
    let memory = resident_bytes().saturating_sub(before);
    let ((), time) = measured(|| {
        for number in 0..CHECKS {
            black_box(check(address(number % 1000)));
        }
    });
    println!(
        "{task:<28} {:>6.0} ns for a check, {:.1} MB after {ADDRESSES} addresses",
        time.as_secs_f64() * 1e9 / f64::from(CHECKS),
        memory as f64 / 1e6
    );
}

/// How many tries pass, of ten a minute: one every second, and all at once before and after the end of a minute.
fn behaviour(mut check: impl FnMut(u64) -> bool) {
    let steady = (0..60).filter(|second| check(*second)).count();
    let around: usize = [179, 180].into_iter().map(|second| (0..20).filter(|_| check(second)).count()).sum();
    println!("  of 60 tries in a minute {steady} pass; of 40 within two seconds {around}");
}
