//! Sessions on a store in memory, with agents that the tests play.
#![allow(clippy::unwrap_used, reason = "a test that can't go on says where, and ends")]

mod agent;
mod damaged;
mod held_up;
mod reconnect;
mod totals;
mod upkeep;

use std::path::Path;

use tiller_core::PathPolicy;

/// Agents may work in this folder only.
fn paths(home: &Path) -> PathPolicy {
    PathPolicy::new(home, &[home.to_owned()], home, &home.join("data")).unwrap()
}
