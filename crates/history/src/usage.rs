//! Tokens and cost.
//!
//! [`ledger`] has the tokens of one transcript, [`prices`] the cost of tokens, [`report`] adds them up, and [`spent`]
//! reads the CLI's own cost record of a conversation.

pub(crate) mod ledger;
pub(crate) mod prices;
pub(crate) mod report;
pub(crate) mod spent;

pub use ledger::Tokens;
pub use report::{Usage, UsageQuery, UsageReport, UsageRow};
