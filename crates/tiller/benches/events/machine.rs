//! How the machine disturbs measurements.

use std::time::Duration;

/// How long this virtual machine was suspended so far, over all processors. Zero on a real machine, or if it is not
/// counted.
pub(crate) fn lost() -> Duration {
    let stat = std::fs::read_to_string("/proc/stat").unwrap_or_default();
    let all_processors = stat.lines().next().unwrap_or_default();
    let stolen = all_processors.split_ascii_whitespace().nth(8);
    let ticks: u64 = stolen.and_then(|field| field.parse().ok()).unwrap_or(0);
    let per_second = rustix::param::clock_ticks_per_second();
    Duration::from_secs_f64(ticks as f64 / per_second as f64)
}
