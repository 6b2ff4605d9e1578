//! Full-text search, with SQLite's FTS5.
//!
//! [`text`] cuts text and queries into words, [`build`] fills the index, [`find`] looks words up and reads the messages
//! that have them, [`verify`] checks messages if their words alone don't prove a match, and [`query`] turns messages
//! into results with excerpts.

pub(crate) mod build;
pub(crate) mod find;
pub(crate) mod query;
pub(crate) mod text;
mod varint;
mod verify;

pub use query::{Fragment, SearchPage, SearchQuery, SearchResult};
