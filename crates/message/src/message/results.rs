//! The structured results of tools, which the agent sends beside what the model is told.

use std::ops::Deref;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::record::message_records;

/// The structured result of a tool as it was written: an object, or a text where the tool failed.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct StructuredResult(pub Value);

impl StructuredResult {
    /// The fields that this crate knows.
    pub fn typed(&self) -> ToolUseResult {
        self.0.as_object().cloned().unwrap_or_default().into()
    }
}

impl Deref for StructuredResult {
    type Target = Value;

    fn deref(&self) -> &Value {
        &self.0
    }
}

impl PartialEq<Value> for StructuredResult {
    fn eq(&self, other: &Value) -> bool {
        self.0 == *other
    }
}

message_records! {
    /// The structured result of a tool. Each tool sets the fields that fit it.
    ToolUseResult {
        /// The file that was changed.
        file_path = "filePath": Option<String>,
        /// The notebook that was changed.
        notebook_path: Option<String>,
        /// How a file was changed.
        structured_patch = "structuredPatch": Vec<PatchHunk>,
        /// The file before the change.
        original_file = "originalFile": Option<String>,
        /// The file's new content.
        content: Value,
        /// What a command wrote to standard output.
        stdout: Option<String>,
        /// What a command wrote to standard error.
        stderr: Option<String>,
        /// Whether a command was interrupted.
        interrupted: bool,
        /// The tokens that a subagent used.
        total_tokens = "totalTokens": Option<u64>,
        /// How many tools a subagent called.
        total_tool_use_count = "totalToolUseCount": Option<u64>,
        /// How long a subagent took.
        total_duration_ms = "totalDurationMs": Option<u64>,
        /// A task of the to-do list.
        task: Option<Map<String, Value>>,
        /// The tasks of the to-do list.
        tasks: Vec<Map<String, Value>>,
    }

    /// A part of a file that was changed.
    PatchHunk {
        /// The first line before.
        old_start = "oldStart": u64,
        /// How many lines before.
        old_lines = "oldLines": u64,
        /// The first line after.
        new_start = "newStart": u64,
        /// How many lines after.
        new_lines = "newLines": u64,
        /// The lines, each with ` `, `-` or `+` in front.
        lines: Vec<String>,
    }
}
