//! The client side of the Agent Client Protocol: JSON-RPC 2.0, one message a line.
//!
//! Owns what the messages look like, no more: who sends them when, and what they mean, is the caller's affair. Agents
//! differ in what they send, so every field that the protocol does not need to make sense is optional, and a kind that is
//! not known here never fails.

mod rpc;
mod session;

pub use rpc::{Incoming, RpcError, error, notification, request, response};
pub use session::{
    AgentCapabilities, AgentInfo, ConfigChoice, ConfigOption, Diff, Initialized, Mode, Models, Modes,
    PermissionOption, PermissionOptionKind, PermissionRequest, PlanEntry, PromptCapabilities, Prompted,
    SessionOpened, ToolCall, ToolContent, Update, method,
};

/// The version of the protocol that is spoken here.
pub const PROTOCOL_VERSION: u16 = 1;
