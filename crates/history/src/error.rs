//! Errors, by what the caller can do about them.

use std::io;

/// Why a query failed.
#[derive(Debug, thiserror::Error)]
pub enum HistoryError {
    /// No such project, session or file: tell the user so.
    #[error("not found")]
    NotFound,
    /// The request is invalid; the text says why.
    #[error("{0}")]
    Invalid(&'static str),
    /// Full-text search needs an index, and the history was opened without one.
    #[error("search needs a folder for its index")]
    NoIndex,
    /// The index could not be used; lists and transcripts work without it.
    #[error("the search index could not be used")]
    Index(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// Files could not be read or written.
    #[error("a file of the history could not be read")]
    Io(#[source] io::Error),
}

impl HistoryError {
    /// Whether the index itself is broken, as opposed to busy or out of space.
    pub(crate) fn is_damage(&self) -> bool {
        let Self::Index(error) = self else { return false };
        let code = error
            .downcast_ref::<rusqlite::Error>()
            .and_then(rusqlite::Error::sqlite_error_code);
        // FTS5 reports its own damage as a plain error.
        matches!(
            code,
            Some(
                rusqlite::ErrorCode::DatabaseCorrupt
                    | rusqlite::ErrorCode::NotADatabase
                    | rusqlite::ErrorCode::Unknown
            )
        )
    }
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
