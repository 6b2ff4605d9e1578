//! Versions of the CLI, and what each of them can do.

use std::fmt;
use std::io;
use std::str::FromStr;

/// A version of Claude Code, such as `2.1.325`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Version {
    /// The first number.
    pub major: u32,
    /// The second number.
    pub minor: u32,
    /// The third number.
    pub patch: u32,
}

impl Version {
    /// A version from its numbers.
    pub const fn new(major: u32, minor: u32, patch: u32) -> Self {
        Self { major, minor, patch }
    }

    /// What this version can do.
    pub fn capabilities(&self) -> Capabilities {
        // The boundaries are those of the versions that were tried; between two of them the older answer is kept.
        Capabilities {
            // Every version that speaks the streaming protocol at all; 2.1.49 and later were tried.
            streaming: true,
            permissions: true,
            resume: true,
            subagents: true,
            sdk_url: *self < Self::new(2, 1, 126),
            usage_queries: *self >= Self::new(2, 1, 197),
            file_suggestions: *self >= Self::new(2, 1, 197),
            listings: *self >= Self::new(2, 1, 325),
        }
    }
}

/// What a version of the CLI can do, as far as it must be known before it is started. Everything else is found out
/// by asking: an operation that the CLI lacks answers with `Unsupported`.
///
/// The first four are those of every version that speaks the streaming protocol (2.1.49 and later were tried).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Capabilities {
    /// Sends messages piece by piece while the model writes them:
    /// [`Options::partial_messages`](crate::Options::partial_messages).
    pub streaming: bool,
    /// Asks for permission: [`ClientBuilder::on_permission`](crate::ClientBuilder::on_permission).
    pub permissions: bool,
    /// Goes on with an earlier conversation: [`Options::resume`](crate::Options::resume).
    pub resume: bool,
    /// Has subagents: [`Options::define_agent`](crate::Options::define_agent).
    pub subagents: bool,
    /// Connects to a WebSocket server of the caller with `--sdk-url`.
    pub sdk_url: bool,
    /// Answers `get_context_usage`, `get_usage`, `get_session_cost`, `get_settings`, `get_binary_version`.
    pub usage_queries: bool,
    /// Answers `file_suggestions`.
    pub file_suggestions: bool,
    /// Answers `list_models`, `list_permission_rules`, `get_hooks_listing`.
    pub listings: bool,
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.major, self.minor, self.patch)
    }
}

/// The text has no version in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("no version in the text")]
pub struct NoVersion;

/// Takes the first word that looks like a version: `2.1.325 (Claude Code)`, `v20.11.1`.
impl FromStr for Version {
    type Err = NoVersion;

    fn from_str(text: &str) -> Result<Self, NoVersion> {
        text.split_whitespace().find_map(word).ok_or(NoVersion)
    }
}

fn word(word: &str) -> Option<Version> {
    let mut numbers = word.trim_start_matches('v').splitn(3, '.');
    let major = numbers.next()?.parse().ok()?;
    let minor = numbers.next()?.parse().ok()?;
    let rest = numbers.next()?;
    let end = rest
        .find(|character: char| !character.is_ascii_digit())
        .unwrap_or(rest.len());
    let patch = rest[..end].parse().ok()?;
    Some(Version { major, minor, patch })
}

/// The version could not be found out.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum VersionError {
    /// The executable could not be read or started.
    #[error("the Claude Code executable can't be run: {source}")]
    Unreadable {
        /// Why.
        source: io::Error,
    },
    /// It did not answer.
    #[error("the Claude Code executable did not tell its version in time")]
    TimedOut,
    /// It answered with something else.
    #[error("the executable is not Claude Code: asked for its version, it said `{output}`")]
    Unexpected {
        /// What it said.
        output: String,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_executables_print() {
        assert_eq!("2.1.325 (Claude Code)\n".parse(), Ok(Version::new(2, 1, 325)));
        assert_eq!("v20.11.1".parse(), Ok(Version::new(20, 11, 1)));
        assert_eq!("3.0.0-beta.1".parse(), Ok(Version::new(3, 0, 0)));
        assert_eq!("usage: claude".parse::<Version>(), Err(NoVersion));
    }

    #[test]
    fn sdk_url_is_gone_from_newer_versions() {
        assert!(Version::new(2, 1, 113).capabilities().sdk_url);
        assert!(!Version::new(2, 1, 126).capabilities().sdk_url);
    }
}
