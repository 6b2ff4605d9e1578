//! What some options are made of.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Which conversation a run continues, if any.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Conversation {
    /// A new one, with an id that the CLI chooses.
    #[default]
    New,
    /// A new one with this id, which must be a UUID.
    NewWithId(String),
    /// The one with this id. It must have been held in the same working directory.
    Resume(String),
    /// The newest one of the working directory.
    Latest,
}

/// What the agent knows of itself.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum SystemPrompt {
    /// Claude Code's own.
    #[default]
    ClaudeCode,
    /// Claude Code's own, with this added.
    Append(String),
    /// This, and nothing of Claude Code's own.
    Replace(String),
}

/// How much the model thinks before it answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Thinking {
    /// As much as the model finds right.
    Adaptive,
    /// At most this many tokens.
    Tokens(u32),
    /// Not at all.
    Disabled,
}

/// An MCP server that the agent may use.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "lowercase")]
#[non_exhaustive]
pub enum McpServer {
    /// A program that speaks MCP on its standard input and output.
    Stdio {
        /// The program to start, by name or path.
        command: String,
        /// Its arguments.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        args: Vec<String>,
        /// Environment variables for it.
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        env: BTreeMap<String, String>,
    },
    /// A server that speaks streamable HTTP.
    Http {
        /// Where it is.
        url: String,
        /// Headers for every request.
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        headers: BTreeMap<String, String>,
    },
    /// A server that speaks HTTP with server-sent events.
    Sse {
        /// Where it is.
        url: String,
        /// Headers for every request.
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        headers: BTreeMap<String, String>,
    },
    /// A server inside this process: its messages arrive as requests of the CLI.
    Sdk {
        /// The name under which it was registered.
        name: String,
    },
}

/// How the CLI's own sandbox for shell commands behaves. What tools of the CLI itself may read, write and fetch is a
/// matter of permission rules.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SandboxSettings {
    /// Whether shell commands run in the sandbox.
    pub enabled: bool,
    /// Whether commands in the sandbox need no permission; the CLI's default is that they need none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub auto_allow_bash_if_sandboxed: Option<bool>,
    /// Commands that run outside the sandbox, such as `docker`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub excluded_commands: Vec<String>,
    /// Whether the model may ask for a command to run outside the sandbox; the CLI's default is that it may.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allow_unsandboxed_commands: Option<bool>,
    /// What commands in the sandbox may reach over the network.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub network: Option<SandboxNetwork>,
    /// Violations that are not reported, by command (`*` for every one): texts that they contain.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub ignore_violations: BTreeMap<String, Vec<String>>,
    /// Whether a weaker sandbox is used where an unprivileged container does not allow the usual one. Less secure.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub enable_weaker_nested_sandbox: bool,
    /// Other settings that the installed version of the CLI understands.
    #[serde(flatten)]
    pub extra: serde_json::Map<String, Value>,
}

/// What commands in the CLI's sandbox may reach over the network.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SandboxNetwork {
    /// Domains that may be reached.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub allowed_domains: Vec<String>,
    /// Domains that may not be reached, whatever `allowed_domains` says.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub denied_domains: Vec<String>,
    /// Unix sockets that may be reached, such as that of an SSH agent.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub allow_unix_sockets: Vec<String>,
    /// Whether all Unix sockets may be reached. Less secure.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub allow_all_unix_sockets: bool,
    /// Whether commands may listen on ports of this machine (macOS).
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub allow_local_binding: bool,
    /// The port of an HTTP proxy of the caller's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub http_proxy_port: Option<u16>,
    /// The port of a SOCKS5 proxy of the caller's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub socks_proxy_port: Option<u16>,
    /// Other settings that the installed version of the CLI understands.
    #[serde(flatten)]
    pub extra: serde_json::Map<String, Value>,
}

/// A subagent that the agent may call.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AgentDefinition {
    /// When to use it, for the model.
    pub description: String,
    /// Its system prompt.
    pub prompt: String,
    /// The tools that it may use; all if `None`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tools: Option<Vec<String>>,
    /// Tools that it may not use.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub disallowed_tools: Vec<String>,
    /// Its model; that of the session if `None`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Other values that this version of the CLI understands.
    #[serde(flatten)]
    pub extra: serde_json::Map<String, Value>,
}

/// How long each stage of ending the agent may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Grace {
    /// From the end of its input to asking it to terminate.
    pub after_input: Duration,
    /// From asking it to terminate to killing it.
    pub after_terminate: Duration,
}

impl Default for Grace {
    /// Together well below the ten seconds that service managers usually give.
    fn default() -> Self {
        Self {
            after_input: Duration::from_secs(3),
            after_terminate: Duration::from_secs(3),
        }
    }
}
