#![doc = include_str!("../README.md")]
#![cfg_attr(docsrs, feature(doc_cfg))]
#![warn(missing_debug_implementations)]

mod client;
mod discover;
mod error;
mod launch;
mod user;
mod version;

pub mod control;
pub mod hooks;
pub mod link;
pub mod options;
#[cfg(feature = "history")]
pub mod sessions;
#[cfg(feature = "tools")]
pub mod tools;

pub use client::{Client, ClientBuilder, ClientHandle, Interrupter, Query, Turn, query, query_stream};
pub use control::{PermissionReply, PermissionRequest};
pub use error::Error;
pub use hooks::{Hook, HookEvent, HookOutput};
pub use options::Options;
pub use tiller_message::{Body, DeltaKind, Digest, Message, PermissionMode, TurnResult};
#[cfg(feature = "tools")]
pub use tools::{ToolOutput, ToolServer};
pub use user::UserMessage;

#[cfg(any(doc, doctest))]
#[doc = include_str!("guide.md")]
pub mod guide {}

/// Messages in all their forms, and what can be made of them.
pub mod message {
    pub use crate::user::{SelectedElement, UiContext, UserMessage};
    #[doc(no_inline)]
    pub use tiller_message::*;
}

/// Processes: starting them, ending them with everything that they started, the lines between us.
pub mod process {
    #[doc(no_inline)]
    pub use tiller_process::*;
}

/// The Claude Code executable: where it is, which version it is, what the version can do, and its command line.
pub mod cli {
    pub use crate::discover::{Executable, Finder, Login, LoginUnknown, NotFound};
    pub use crate::launch::{Channel, LaunchError, environment_of, prepare, prepare_with};
    pub use crate::version::{Capabilities, NoVersion, Version, VersionError};
}
