//! Tokens and cost.
//!
//! [`ledger`] is what one transcript records, [`prices`] what tokens cost, [`report`] adds them up, and [`spent`] reads the
//! CLI's own account of one conversation.

pub(crate) mod ledger;
pub(crate) mod prices;
pub(crate) mod report;
pub(crate) mod spent;

pub use ledger::Tokens;
pub use report::{Usage, UsageQuery, UsageReport, UsageRow};
