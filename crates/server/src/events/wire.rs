//! The event API's types, to the letter of its contract. They are the source of `web/src/gen`.
//!
//! Each text frame is one [`ClientEvent`] or one [`ServerEvent`]. This module knows nothing of sessions: turning
//! these types into commands, and events into these types, is the work of `translate`.

mod client;
mod server;

use serde::{Deserialize, Serialize};
use ts_rs::TS;

pub use client::*;
pub use server::*;

#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize, TS)]
#[serde(rename_all = "camelCase")]
#[ts(export_to = "events.ts")]
pub enum PermissionMode {
    Default,
    AcceptEdits,
    Plan,
    BypassPermissions,
}

/// Who answers when the agent asks for a tool.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize, TS)]
#[serde(rename_all = "lowercase")]
#[ts(export_to = "events.ts")]
pub enum Approval {
    /// The user, for every tool that the agent asks about.
    Ask,
    /// Everything but questions, plans and elicitations is allowed.
    Auto,
}

#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize, TS)]
#[serde(rename_all = "lowercase")]
#[ts(export_to = "events.ts")]
pub enum SessionStatus {
    Idle,
    Running,
    Completed,
    Error,
}

/// What the user was looking at when they wrote a prompt.
#[derive(Clone, Debug, Deserialize, Serialize, TS)]
#[serde(rename_all = "camelCase")]
#[ts(export_to = "events.ts", optional_fields)]
pub struct UiContext {
    #[serde(default)]
    pub mode: String,
    #[serde(default)]
    pub current_view: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub selected_element: Option<SelectedElement>,
    /// A file, or lines of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub selected_file: Option<SelectedFile>,
}

#[derive(Clone, Debug, Deserialize, Serialize, TS)]
#[serde(rename_all = "camelCase")]
#[ts(export_to = "events.ts")]
pub struct SelectedElement {
    #[serde(default)]
    pub tag_name: String,
    #[serde(default)]
    pub selector: String,
    #[serde(default)]
    pub text_content: String,
}

#[derive(Clone, Debug, Deserialize, Serialize, TS)]
#[serde(rename_all = "camelCase")]
#[ts(export_to = "events.ts", optional_fields)]
pub struct SelectedFile {
    pub path: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start_line: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end_line: Option<u32>,
}

/// What can be asked of a session's agent beside its work.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize, TS)]
#[serde(rename_all = "camelCase")]
#[ts(export_to = "events.ts")]
pub enum Subject {
    ContextUsage,
    McpStatus,
    /// Files to mention for `query`.
    FileSuggestions,
    Commands,
    Models,
    PermissionRules,
    Hooks,
    Usage,
    Settings,
}

#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize, TS)]
#[serde(rename_all = "lowercase")]
#[ts(export_to = "events.ts")]
pub enum Behavior {
    Allow,
    Deny,
    /// Nobody answered: the turn was stopped or the agent ended.
    Withdrawn,
}
