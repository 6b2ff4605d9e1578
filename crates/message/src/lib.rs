//! The message language of Tiller: the stream of the Claude Agent SDK, typed and tolerant, each message with its JSON
//! as it came. Every reader of messages uses this crate. Agents that speak another language are translated into this
//! one by their backends.
//!
//! The crate does not know how messages travel, nor what a session is.

#![warn(missing_debug_implementations)]

mod assembler;
mod cost;
mod digest;
mod display;
mod files;
mod find;
mod message;
mod mode;
mod outcome;
mod people;
mod pieces;
#[doc(hidden)]
pub mod record;
mod rules;
mod stopped;
mod summary;
mod tasks;
mod todos;
mod tools;
#[cfg(feature = "ts")]
mod types;

pub use assembler::{Assembled, Assembler};
pub use cost::{Cost, since as cost_since};
pub use digest::{Digest, ToolCall};
pub use display::{InputField, input_fields, is_invisible, visible};
pub use files::{changed_file, file_to_change, is_editing_tool};
pub use find::{FoundIn, Words, find_in};
pub use message::*;
pub use mode::PermissionMode;
pub use outcome::TurnOutcome;
pub use people::{ASK_TOOL, PLAN_TOOL, is_for_people};
pub use pieces::{PieceEntry, StreamedPieces};
pub use rules::split_rules;
pub use stopped::turn_stopped;
pub use summary::{Summary, SummaryView, TurnFigures};
pub use tasks::{RunningTask, RunningTasks};
pub use todos::{Todo, TodoStatus, Todos};
pub use tools::{ToolCalls, ToolStatus, succeeded_calls};
#[cfg(feature = "ts")]
pub use types::MessageHead;
