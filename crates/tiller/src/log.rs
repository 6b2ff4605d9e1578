//! The program's log: lines on standard error. A line that can't be written is lost, and nothing else is.

use std::io::{self, IsTerminal, Write};

use tracing_subscriber::EnvFilter;

/// Standard error, without its failures. There is nobody left to tell: the terminal is closed, or the disk is full.
struct Stderr;

impl Write for Stderr {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match io::stderr().write(bytes) {
            Ok(0) => Ok(bytes.len()),
            Ok(written) => Ok(written),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => Err(error),
            Err(_) => Ok(bytes.len()),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// `level` unless `TILLER_LOG` says otherwise.
pub(crate) fn start(level: &str) {
    let filter = EnvFilter::try_from_env("TILLER_LOG").unwrap_or_else(|_| EnvFilter::new(level));
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(|| Stderr)
        // The library would say so on standard error, and panic when that fails.
        .log_internal_errors(false)
        .with_ansi(io::stderr().is_terminal())
        .with_target(false)
        .init();
}

/// The last words of a program that fails.
pub(crate) fn say(words: &str) {
    // As above: if it can't be said, the exit code has to do.
    writeln!(io::stderr(), "{words}").ok();
}
