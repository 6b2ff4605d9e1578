//! Turns the bytes of a transcript into messages.
//!
//! From the bottom up: [`place`] opens files, [`lines`] splits them into lines, [`scan`], [`json`], [`gaps`] and
//! [`record`] read the keys of one line, [`follow`] continues when a file has grown. Above them, [`outline`] and
//! [`chain`] determine which lines are messages of the conversation, [`message`] builds a message, and [`transcript`],
//! [`subagent`] and [`export`] build whole views.

#[cfg(test)]
mod agreement;
pub(crate) mod chain;
pub(crate) mod export;
pub(crate) mod follow;
pub(crate) mod gaps;
pub(crate) mod json;
pub(crate) mod lines;
pub(crate) mod message;
pub(crate) mod outline;
pub(crate) mod place;
pub(crate) mod record;
pub(crate) mod scan;
pub(crate) mod subagent;
pub(crate) mod transcript;
pub(crate) mod typed;

pub use export::Format;
pub use place::{ProjectId, SessionId};
