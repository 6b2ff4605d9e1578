//! The client side of the Agent Client Protocol: JSON-RPC 2.0, one message a line.
//!
//! Owns the types of the messages. The caller decides when to send a message and what it means. Agents differ in what
//! they send, so every dispensable field is optional, and an unknown kind never fails.

mod rpc;
mod session;

pub use rpc::{Incoming, RpcError, error, notification, request, response};
pub use session::{
    AgentCapabilities, AgentInfo, AuthMethod, Choices, ConfigChoice, ConfigOption, Diff, Initialized, Mode,
    Model, Models, Modes, PermissionOption, PermissionOptionKind, PermissionRequest, PlanEntry,
    PromptCapabilities, Prompted, SessionOpened, ToolCall, ToolContent, Update, method,
};

/// The protocol version of this crate.
pub const PROTOCOL_VERSION: u16 = 1;
