//! The program's log on standard error. A line that can't be written is lost, without further effects.

use std::io::{self, IsTerminal, Write};

use serde::Deserialize;
use tracing_subscriber::EnvFilter;

/// How a line is written.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Format {
    /// For people.
    #[default]
    Text,
    /// One JSON object a line, for programs.
    Json,
}

/// Standard error that ignores failures: the terminal is closed, or the disk is full, and nobody can be told.
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

/// `level` unless `TILLER_LOG` is set.
pub(crate) fn start(level: &str, format: Format) {
    let filter = EnvFilter::try_from_env("TILLER_LOG").unwrap_or_else(|_| EnvFilter::new(level));
    let log = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(|| Stderr)
        // The library would report it on standard error, and panic if that fails.
        .log_internal_errors(false)
        .with_ansi(format == Format::Text && io::stderr().is_terminal())
        .with_target(false);
    match format {
        Format::Text => log.init(),
        Format::Json => log.json().flatten_event(true).with_span_list(false).init(),
    }
}

/// Prints the error of a program that fails.
pub(crate) fn say(words: &str) {
    // If it can't be printed, the exit code has to suffice.
    writeln!(io::stderr(), "{words}").ok();
}
