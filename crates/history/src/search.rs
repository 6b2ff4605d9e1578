//! Full-text search.
//!
//! [`text`] cuts text and queries into words, [`build`] fills the index (through [`gather`], [`pairs`] and [`runs`]), [`find`]
//! and [`proof`] answer from it, and [`query`] turns answers into results with excerpts.

pub(crate) mod build;
pub(crate) mod find;
mod gather;
mod pairs;
mod proof;
pub(crate) mod query;
pub(crate) mod runs;
pub(crate) mod text;
mod varint;

pub use query::{Fragment, SearchPage, SearchQuery, SearchResult};
