//! The history: lists, reads, searches and exports the agent's transcripts.
//!
//! It only asks the history crate and shapes answers. Who may see which transcript is decided in [`access`].

mod access;
mod handle;
mod live;
mod query;
mod routes;
mod running;
mod stream;
mod vault;
pub mod wire;

pub use handle::HistoryHandle;
pub(crate) use routes::routes;
