#![doc = include_str!("../README.md")]

mod client;
mod control;
mod discover;
mod hooks;
mod launch;
mod link;
mod options;
#[cfg(feature = "tools")]
mod tools;
mod user;
mod version;

pub use client::{AgentError, Client, ClientBuilder, Query, query};
pub use control::*;
pub use discover::{Executable, Finder, Login, LoginUnknown, NotFound};
pub use hooks::{Hook, HookEvent, HookInput, HookOutput};
pub use launch::{Channel, LaunchError, environment_of, prepare, prepare_with};
pub use link::NOT_FOUND as CONVERSATION_NOT_FOUND;
pub use link::{
    Closed, ConnectError, Exit, Inbound, Inbox, Link, LinkSettings, RespondError, connect, connect_over,
    connect_websocket,
};
pub use options::{AgentDefinition, Conversation, Grace, McpServer, Options, SystemPrompt, Thinking};
#[cfg(feature = "tools")]
pub use tools::{ToolOutput, ToolServer};
pub use user::{SelectedElement, UiContext, UserMessage};
pub use version::{Capabilities, NoVersion, Version, VersionError};

#[doc(inline)]
pub use tiller_message::*;
#[doc(inline)]
pub use tiller_process::*;
