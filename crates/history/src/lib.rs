//! Reads the transcripts that the Claude Code CLI keeps: lists them, turns them into messages, finds words in them, counts
//! what they cost, exports and archives them.
//!
//! [`History`] is the way in. It only ever reads under the CLI's home, opens nothing outside of it, knows every layout of
//! transcripts that releases have had so far, and takes lines that it does not know, or that are torn, for what they are.
//! An index of its own makes it fast; whatever the index says can be read from the transcripts again.
//! It knows nothing of HTTP, of running sessions, or of the rest of the program.

mod bytes;
mod card;
mod catalogue;
mod chain;
mod digest;
mod error;
mod export;
mod follow;
mod gaps;
mod history;
mod index;
mod json;
mod ledger;
mod lines;
mod message;
mod model;
mod names;
mod outline;
mod place;
mod prices;
mod private;
mod record;
mod scan;
mod search;
mod shared;
mod spent;
mod subagent;
mod text;
mod transcript;
mod typed;
mod usage;
mod vault;
mod watch;

pub use error::{HistoryError, Result};
pub use export::Format;
pub use history::{History, Indexed};
pub use ledger::Tokens;
pub use model::{
    Branch, Compaction, Facets, Include, Message, MessagePage, Offset, Page, Patch, Project, ProjectList,
    ProjectSessions, Role, Session, SessionDriver, SessionFilter, SessionPage,
};
pub use names::Names;
pub use place::{ProjectId, SessionId};
pub use search::{Fragment, SearchPage, SearchQuery, SearchResult};
pub use shared::Text;
pub use usage::{Usage, UsageQuery, UsageReport, UsageRow};
pub use vault::{Archived, Stored, Vault};
pub use watch::{Change, Watch};
