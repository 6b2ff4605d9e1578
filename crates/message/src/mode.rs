//! When an agent asks before it acts.

use std::fmt;

use serde::{Deserialize, Serialize};

/// When the agent asks before it uses a tool.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum PermissionMode {
    /// Asks for everything that is not allowed by a rule.
    #[default]
    Default,
    /// Edits files without asking.
    AcceptEdits,
    /// Never asks. Must have been allowed when the agent was started.
    BypassPermissions,
    /// Only looks, and makes a plan.
    Plan,
    /// Denies what would need asking.
    DontAsk,
    /// Lets a model decide what needs asking.
    Auto,
    /// A mode that this version of the crate does not know.
    Other(String),
}

impl PermissionMode {
    /// The CLI's name of the mode.
    pub fn as_str(&self) -> &str {
        match self {
            Self::Default => "default",
            Self::AcceptEdits => "acceptEdits",
            Self::BypassPermissions => "bypassPermissions",
            Self::Plan => "plan",
            Self::DontAsk => "dontAsk",
            Self::Auto => "auto",
            Self::Other(name) => name,
        }
    }
}

impl From<&str> for PermissionMode {
    fn from(name: &str) -> Self {
        match name {
            "default" | "manual" => Self::Default,
            "acceptEdits" => Self::AcceptEdits,
            "bypassPermissions" => Self::BypassPermissions,
            "plan" => Self::Plan,
            "dontAsk" => Self::DontAsk,
            "auto" => Self::Auto,
            other => Self::Other(other.to_owned()),
        }
    }
}

impl fmt::Display for PermissionMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Serialize for PermissionMode {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl<'de> Deserialize<'de> for PermissionMode {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer).map(|name| Self::from(name.as_str()))
    }
}
