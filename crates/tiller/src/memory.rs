//! Returns memory to the system after the start and after a burst.
//!
//! The C library keeps freed memory for later. After a busy agent that is ten times what an idle server needs, and
//! unrelated to what is in use. The start also touches most of the executable's code, which stays mapped although an idle
//! server uses little of it.

use std::time::Duration;

/// How often the memory is checked.
const INTERVAL: Duration = Duration::from_secs(5);

/// What an idle server may keep. Less is not worth the effort.
const KEPT: u64 = 24 << 20;

/// Memory is returned again only if this much more is in use than after the last time.
const GROWN: u64 = 4 << 20;

/// Returning memory makes other threads wait for a moment, so it is done while the server is nearly idle: at most a
/// fiftieth of a processor.
const REST: f64 = 0.02;

/// When the start is over, first page included.
const STARTED: Duration = Duration::from_millis(1500);

/// What this process uses.
#[derive(Clone, Copy)]
struct Usage {
    resident: u64,
    /// Processor time so far, in seconds.
    cpu: f64,
}

/// Checks forever.
pub(crate) async fn release_periodically() {
    tokio::time::sleep(STARTED).await;
    if tokio::task::spawn_blocking(give_back).await.is_err() {
        return;
    }
    let mut before: Option<Usage> = None;
    let mut least = 0;
    loop {
        tokio::time::sleep(INTERVAL).await;
        let now = usage();
        least = now.map_or(least, |now| least.min(now.resident));
        if let (Some(before), Some(now)) = (before, now)
            && now.resident > KEPT.max(least + GROWN)
            && now.cpu - before.cpu < REST * INTERVAL.as_secs_f64()
        {
            if tokio::task::spawn_blocking(give_back).await.is_err() {
                return;
            }
            least = usage().map_or(0, |after| after.resident);
        }
        before = now;
    }
}

#[cfg(target_os = "linux")]
#[expect(clippy::cast_precision_loss, reason = "a rough figure")]
fn usage() -> Option<Usage> {
    let stat = std::fs::read_to_string("/proc/self/stat").ok()?;
    // The name before it may contain anything.
    let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_ascii_whitespace().collect();
    let number = |index: usize| fields.get(index)?.parse::<u64>().ok();
    let ticks = number(11)? + number(12)?;
    Some(Usage {
        resident: number(21)? * rustix::param::page_size() as u64,
        cpu: ticks as f64 / rustix::param::clock_ticks_per_second() as f64,
    })
}

#[cfg(not(target_os = "linux"))]
fn usage() -> Option<Usage> {
    None
}

fn give_back() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    // SAFETY: it may be called at any time from any thread, and touches only unused memory.
    unsafe {
        libc::malloc_trim(0);
    }
    #[cfg(target_os = "linux")]
    unmap_code();
}

/// Takes the executable's code out of this process's memory. The file's pages stay in the system's cache, where they are the
/// first that it can use otherwise; what runs next is mapped again from there, 64 KB at a time.
#[cfg(target_os = "linux")]
fn unmap_code() {
    use rustix::mm::{Advice, madvise};

    let Some((start, end)) = std::fs::read_to_string("/proc/self/maps")
        .ok()
        .and_then(|maps| mapping_of(&maps, unmap_code as *const () as usize))
    else {
        return;
    };
    // SAFETY: the mapping is one of a file, can't be written to, and has no pages of its own: each one comes back as it was
    // when it is needed.
    let unmapped = unsafe {
        madvise(
            std::ptr::with_exposed_provenance_mut(start),
            end - start,
            Advice::LinuxDontNeed,
        )
    };
    if let Err(error) = unmapped {
        tracing::debug!(%error, "the code of the start stays mapped");
    }
}

/// The bounds of the mapping that has this address, if it is one of code that can't be written to.
#[cfg(target_os = "linux")]
fn mapping_of(maps: &str, address: usize) -> Option<(usize, usize)> {
    maps.lines().find_map(|line| {
        let mut fields = line.split_ascii_whitespace();
        let (start, end) = fields.next()?.split_once('-')?;
        let parse = |text| usize::from_str_radix(text, 16).ok();
        let (start, end) = (parse(start)?, parse(end)?);
        (fields.next()? == "r-xp" && (start..end).contains(&address)).then_some((start, end))
    })
}

#[cfg(all(test, target_os = "linux", target_env = "gnu"))]
mod tests {
    use super::*;

    #[test]
    fn code_is_found_by_an_address_in_it() {
        let maps = "00400000-00500000 r--p 00000000 fe:00 1 /bin/x\n\
                    00500000-00600000 r-xp 00100000 fe:00 1 /bin/x\n\
                    00600000-00700000 rwxp 00000000 00:00 0\n";
        assert_eq!(mapping_of(maps, 0x0050_0000), Some((0x0050_0000, 0x0060_0000)));
        for elsewhere in [0x0040_0000, 0x0060_0000, 0x0070_0000] {
            assert_eq!(mapping_of(maps, elsewhere), None);
        }
        unmap_code();
        assert!(usage().is_some(), "and everything still runs");
    }

    #[test]
    fn what_was_freed_is_given_back() {
        const PIECES: usize = 200_000;
        // Small pieces, and one that stays at the end: otherwise the library returns them by itself.
        let pieces: Vec<_> = (0..PIECES).map(|_| vec![1u8; 500]).collect();
        let stays = vec![1u8; 500];
        let full = usage().unwrap();
        drop(pieces);
        give_back();
        let after = usage().unwrap();
        assert!(
            after.resident + 50 * (1 << 20) < full.resident,
            "{} of {}",
            after.resident,
            full.resident
        );
        assert!(after.cpu >= full.cpu && after.cpu > 0.0);
        drop(stays);
    }
}
