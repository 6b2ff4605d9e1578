//! The contracts, one function each. Every function gets an empty place.
#![allow(
    clippy::unwrap_used,
    reason = "a contract that can't go on fails, and says where"
)]

pub mod arrangement;
pub mod audit;
pub mod commits;
pub mod compaction;
pub mod credentials;
pub mod fencing;
pub mod listing;
pub mod prompts;
pub mod whole_sessions;
