//! What can go wrong, by what the caller can do about it.

use std::io;

/// Why a question to the history has no answer.
#[derive(Debug, thiserror::Error)]
pub enum HistoryError {
    /// No such project, session or file: tell the user so.
    #[error("not found")]
    NotFound,
    /// The request itself makes no sense: the sentence says why.
    #[error("{0}")]
    Invalid(&'static str),
    /// Full-text search needs the index, and there is none.
    #[error("search needs a folder for its index")]
    NoIndex,
    /// The index could not be used; lists and transcripts work without it.
    #[error("the search index could not be used")]
    Index(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// Files could not be read or written.
    #[error("a file of the history could not be read")]
    Io(#[source] io::Error),
}

pub type Result<T> = std::result::Result<T, HistoryError>;

impl From<io::Error> for HistoryError {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::NotFound => Self::NotFound,
            _ => Self::Io(error),
        }
    }
}

impl From<rusqlite::Error> for HistoryError {
    fn from(error: rusqlite::Error) -> Self {
        Self::Index(Box::new(error))
    }
}
