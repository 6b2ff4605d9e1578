//! The limit of open files.
//!
//! A program with many agents needs more than the usual 1024, a default for programs that can't handle more. So it
//! raises its own limit, and its children get the original one: children inherit ours otherwise.

use std::io;
use std::sync::OnceLock;

use rustix::process::{Pid, Resource, Rlimit, getrlimit, setrlimit};

/// The original limit, once it was raised. Per process, as the limit itself is.
static GIVEN: OnceLock<u64> = OnceLock::new();

/// Raises this process's limit to what the system allows. Agents that are started from then on get the original limit.
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

/// Restores the original limit, for a moment or before this process executes another program.
pub fn restore_open_files() -> io::Result<()> {
    given_open_files().map_or(Ok(()), limit_open_files)
}

/// Limits the open files of this process and its children.
pub fn limit_open_files(count: u64) -> io::Result<()> {
    set(Some(count))
}

/// The original limit of this process, if it was raised.
pub fn given_open_files() -> Option<u64> {
    GIVEN.get().copied()
}

fn set(current: Option<u64>) -> io::Result<()> {
    let maximum = getrlimit(Resource::Nofile).maximum;
    Ok(setrlimit(Resource::Nofile, Rlimit { current, maximum })?)
}

/// As [`limit_open_files`], for a process that was just started, which can't have opened that many files yet.
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
