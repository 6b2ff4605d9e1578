//! Reads the transcripts of the Claude Code CLI: lists them, turns them into messages, searches them, counts their
//! cost, exports and archives them.
//!
//! [`History`] is the entry point. It only reads, never outside of the CLI's home, knows the transcript layouts of all
//! releases so far, and tolerates unknown and torn lines. Its own index makes it fast; everything in the index can be
//! read from the transcripts again. It does not know HTTP, running sessions, or the rest of the program.

#[cfg(feature = "against")]
pub mod against;
mod bytes;
mod error;
mod history;
mod index;
mod list;
mod model;
mod private;
mod read;
mod search;
mod usage;
mod vault;

pub use error::{HistoryError, Result};
pub use history::{History, Indexed};
pub use list::{Change, Names, Text, Watch};
pub use model::{
    Branch, Compaction, EntryPage, Facets, Include, Message, MessagePage, Offset, Page, Patch, Project,
    ProjectList, ProjectSessions, Role, Session, SessionDriver, SessionFilter, SessionPage, TranscriptEntry,
    WholeResult,
};
pub use read::{Format, ProjectId, SessionId};
pub use search::{Fragment, SearchPage, SearchQuery, SearchResult};
pub use usage::{Tokens, Usage, UsageQuery, UsageReport, UsageRow};
pub use vault::{Archived, Stored, Vault};
