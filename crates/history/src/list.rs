//! The list of projects and sessions, and how it stays up to date.
//!
//! [`digest`] is built from the lines of one transcript, [`card`] is its compact form in memory and on disk, [`catalogue`]
//! has one for every transcript, and [`watch`] reports changes.

pub(crate) mod card;
pub(crate) mod catalogue;
pub(crate) mod digest;
pub(crate) mod names;
pub(crate) mod shared;
pub(crate) mod watch;

pub use names::Names;
pub use shared::Text;
pub use watch::{Change, Watch};
