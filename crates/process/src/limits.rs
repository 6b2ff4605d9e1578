//! How many files may be open at once.
//!
//! A program with many agents needs more than the usual 1024, which is there for programs that can't deal with more.
//! So it raises the limit for itself, and what it starts gets the limit that it was given: children inherit ours.

use std::io;
use std::sync::OnceLock;

use rustix::process::{Pid, Resource, Rlimit, getrlimit, setrlimit};

/// What we were given, once it was raised. Of the process, as the limit itself is.
static GIVEN: OnceLock<u64> = OnceLock::new();

/// Lets this process open as many files as the system allows. Agents that are started from then on get what this process
/// had before.
pub fn raise_open_files() -> io::Result<()> {
    let limit = getrlimit(Resource::Nofile);
    if let Some(given) = limit.current
        && limit.current != limit.maximum
    {
        set(limit.maximum)?;
        GIVEN.get_or_init(|| given);
    }
    Ok(())
}

/// Takes back what [`raise_open_files`] did, for a moment or before this process becomes another program.
pub fn restore_open_files() -> io::Result<()> {
    given_open_files().map_or(Ok(()), limit_open_files)
}

/// Lets this process, and what it starts, open that many files.
pub fn limit_open_files(count: u64) -> io::Result<()> {
    set(Some(count))
}

/// What this process was given, if it has more.
pub fn given_open_files() -> Option<u64> {
    GIVEN.get().copied()
}

fn set(current: Option<u64>) -> io::Result<()> {
    let maximum = getrlimit(Resource::Nofile).maximum;
    Ok(setrlimit(Resource::Nofile, Rlimit { current, maximum })?)
}

/// The same as [`limit_open_files`], for a process that has only just been started: it can't have opened that many yet.
#[cfg(target_os = "linux")]
pub(crate) fn limit_open_files_of(process: Pid, count: u64) -> io::Result<()> {
    let limit = Rlimit {
        current: Some(count),
        maximum: getrlimit(Resource::Nofile).maximum,
    };
    rustix::process::prlimit(Some(process), Resource::Nofile, limit)?;
    Ok(())
}

/// On other systems the limits of another process can't be changed.
#[cfg(not(target_os = "linux"))]
pub(crate) fn limit_open_files_of(_process: Pid, _count: u64) -> io::Result<()> {
    Ok(())
}
