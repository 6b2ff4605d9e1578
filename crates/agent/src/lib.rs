//! A Rust SDK for the Claude Code CLI.

mod control;
mod discover;
mod frame;
mod launch;
mod lenient;
mod link;
mod message;
mod options;
mod process;
mod transport;
mod user;
mod version;

pub use control::*;
pub use discover::{Executable, Finder, NotFound};
pub use frame::{Frame, Framer, MAX_LINE, lines};
pub use launch::{Channel, Launch, LaunchError};
pub use link::{
    Closed, ConnectError, Exit, Inbound, Inbox, Link, LinkSettings, RespondError, connect, connect_over,
    connect_websocket,
};
pub use message::{Kind, Message, ParseError};
pub use options::{
    AgentDefinition, Conversation, Grace, McpServer, Options, PermissionMode, SystemPrompt, Thinking,
};
pub use process::{Ended, LocalProcess, Process, RUN_MARK, Spawned, StderrCallback, Tree, spawn};
pub use transport::{LineSink, Socket, SocketSender, Sockets, Wire, sockets, stdio, websocket};
pub use user::{SelectedElement, UiContext, UserMessage};
pub use version::{Capabilities, NoVersion, Version, VersionError};
