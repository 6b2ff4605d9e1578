//! The message language of Tiller: the stream of the Claude Agent SDK, typed and tolerant, each message with its JSON
//! as it came. Whoever reads a message of an agent's reads it through this crate.
//!
//! It does not know how messages come and go, nor what a session is.

mod assembler;
mod digest;
mod message;
mod mode;
#[doc(hidden)]
pub mod record;

pub use assembler::{Assembled, Assembler};
pub use digest::{Cost, Digest, Todo, TodoStatus, Todos, ToolCall};
pub use message::*;
pub use mode::PermissionMode;
