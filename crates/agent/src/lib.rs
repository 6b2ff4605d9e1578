#![doc = include_str!("../README.md")]

mod client;
mod control;
mod digest;
mod discover;
mod frame;
mod hooks;
mod launch;
mod limits;
mod link;
mod message;
mod options;
mod process;
mod record;
mod stream;
#[cfg(feature = "tools")]
mod tools;
mod transport;
mod user;
mod version;

pub use client::{AgentError, Client, ClientBuilder, Query, query};
pub use control::*;
pub use digest::{Cost, Digest, Todo, TodoStatus, Todos, ToolCall};
pub use discover::{Executable, Finder, NotFound};
pub use frame::{Frame, Framer, Located, MAX_LINE, lines};
pub use hooks::{Hook, HookEvent, HookInput, HookOutput};
pub use launch::{Channel, Launch, LaunchError};
pub use limits::{limit_open_files, raise_open_files, restore_open_files};
pub use link::NOT_FOUND as CONVERSATION_NOT_FOUND;
pub use link::{
    Closed, ConnectError, Exit, Inbound, Inbox, Link, LinkSettings, RespondError, connect, connect_over,
    connect_websocket,
};
pub use message::*;
pub use options::{
    AgentDefinition, Conversation, Grace, McpServer, Options, PermissionMode, SystemPrompt, Thinking,
};
pub use process::{
    Ended, LocalProcess, Process, RUN_MARK, SharedTree, Spawned, StderrCallback, Tree, TreeIdentity, spawn,
};
pub use stream::{Assembled, Assembler};
#[cfg(feature = "tools")]
pub use tools::{ToolOutput, ToolServer};
pub use transport::{Line, LineSink, Socket, SocketSender, Sockets, Wire, sockets, stdio, websocket};
pub use user::{SelectedElement, UiContext, UserMessage};
pub use version::{Capabilities, NoVersion, Version, VersionError};
