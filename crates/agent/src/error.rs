//! Why something did not work, by what the caller can do about it.

use std::io;
use std::path::PathBuf;

use crate::control::RequestError;
use crate::discover::NotFound;
use crate::launch::LaunchError;
use crate::link::{ConnectError, Exit};
use crate::version::Version;

/// Why an agent could not be started, did not do what it was asked to, or can't go on.
///
/// One level deep: match on it directly. New kinds may be added, so a match needs a `_` arm.
///
/// ```
/// use tiller_agent::Error;
///
/// fn advice(error: &Error) -> &'static str {
///     match error {
///         Error::NotInstalled(_) => "Install Claude Code.",
///         Error::SessionExpired { .. } => "Start a new conversation.",
///         Error::ResumeFailed { .. } => "Keep the conversation; read the error and try again.",
///         Error::Unsupported { .. } => "Hide the button: the installed version can't do it.",
///         _ => "Show the error.",
///     }
/// }
/// ```
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[doc(alias = "ClaudeSDKError")]
#[doc(alias = "AgentError")]
pub enum Error {
    /// Claude Code is not installed, or not where the options say.
    #[error(transparent)]
    #[doc(alias = "CLINotFoundError")]
    NotInstalled(#[from] NotFound),
    /// The working directory does not exist, or can't be used.
    #[error("the working directory {} can't be used: {source}", path.display())]
    WorkingDirectory {
        /// The folder that the options name.
        path: PathBuf,
        /// The operating system's reason.
        source: io::Error,
    },
    /// An option can't be put on a command line.
    #[error("{reason}")]
    InvalidOption {
        /// Which one, and what to write instead.
        reason: String,
    },
    /// The installed version does not connect to a WebSocket server. Use standard input and output, which every
    /// version does.
    #[error(
        "Claude Code {version} does not connect to a WebSocket server of yours: versions before 2.1.126 do. Connect \
         over standard input and output instead"
    )]
    WebSocketUnsupported {
        /// The installed version.
        version: Version,
    },
    /// The operating system did not start the process.
    #[error("Claude Code could not be started: {0}")]
    #[doc(alias = "CLIConnectionError")]
    Start(#[source] io::Error),
    /// The conversation that was to be resumed does not exist any more: the CLI said so. Start a new one.
    #[error("the conversation {} has expired; start a new one", session_id.as_deref().unwrap_or("to be resumed"))]
    SessionExpired {
        /// The conversation that was to be resumed.
        session_id: Option<String>,
    },
    /// The agent ended before it could go on with the conversation, and the CLI did not say that the conversation is
    /// gone: a wrong option, a settings file that is missing, a lack of rights. Keep the conversation.
    #[error(
        "the conversation {} could not be resumed ({}){}{}",
        session_id.as_deref().unwrap_or("to be resumed"),
        exit.how(),
        if exit.ended_early() {
            ": the agent ended within 5 seconds, which may also mean that the conversation is damaged"
        } else {
            ""
        },
        exit.last_words(),
    )]
    ResumeFailed {
        /// The conversation that was to be resumed.
        session_id: Option<String>,
        /// How the process ended, with the last lines of its stderr.
        exit: Exit,
    },
    /// The agent ended without being asked to.
    #[error("the agent ended unexpectedly ({}){}", .0.how(), .0.last_words())]
    #[doc(alias = "ProcessError")]
    Exited(Exit),
    /// The client was closed or dropped.
    #[error("the agent was closed")]
    Closed,
    /// There is no turn to read: ask something first.
    #[error("there is no turn to finish: send a prompt first")]
    NoTurn,
    /// The installed version does not know the operation. Hide it; nothing is broken.
    #[error("this version of Claude Code does not support `{operation}`")]
    Unsupported {
        /// The operation's name in the control protocol.
        operation: &'static str,
    },
    /// The CLI knows the operation and refused it.
    #[error("Claude Code refused `{operation}`: {message}")]
    Refused {
        /// The operation's name in the control protocol.
        operation: &'static str,
        /// The CLI's reason.
        message: String,
    },
    /// The CLI did not answer within [`Options::request_timeout`](crate::Options::request_timeout).
    #[error("Claude Code did not answer `{operation}` in time")]
    TimedOut {
        /// The operation's name in the control protocol.
        operation: &'static str,
    },
    /// The CLI's answer has another form than this operation's.
    #[error("the answer to `{operation}` was not understood: {source}")]
    #[doc(alias = "CLIJSONDecodeError")]
    UnexpectedAnswer {
        /// The operation's name in the control protocol.
        operation: &'static str,
        /// What is wrong with the answer.
        source: serde_json::Error,
    },
    /// A session file could not be read or changed.
    #[error("the session can't be read or changed: {0}")]
    Session(#[source] io::Error),
}

impl From<LaunchError> for Error {
    fn from(error: LaunchError) -> Self {
        match error {
            LaunchError::NotFound(missing) => Self::NotInstalled(missing),
            LaunchError::WorkingDirectory { path, source } => Self::WorkingDirectory { path, source },
            error @ (LaunchError::Argument { .. } | LaunchError::Settings { .. }) => Self::InvalidOption {
                reason: error.to_string(),
            },
        }
    }
}

impl From<ConnectError> for Error {
    fn from(error: ConnectError) -> Self {
        match error {
            ConnectError::Launch(error) => error.into(),
            ConnectError::Spawn(source) => Self::Start(source),
            ConnectError::WebSocketUnsupported { version } => Self::WebSocketUnsupported { version },
        }
    }
}

impl From<RequestError> for Error {
    fn from(error: RequestError) -> Self {
        match error {
            RequestError::Unsupported { subtype } => Self::Unsupported { operation: subtype },
            RequestError::Refused { subtype, message } => Self::Refused {
                operation: subtype,
                message,
            },
            RequestError::TimedOut { subtype } => Self::TimedOut { operation: subtype },
            RequestError::Closed => Self::Closed,
            RequestError::Unexpected { subtype, source } => Self::UnexpectedAnswer {
                operation: subtype,
                source,
            },
        }
    }
}
