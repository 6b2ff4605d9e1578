//! A scripted model and a scripted CLI, for tests, benchmarks and demos.
//!
//! - [`model`] is a Messages API server that the real Claude Code CLI takes for the model. A test writes down what the
//!   model will say, and the real CLI really acts on it.
//! - [`agent`] is a CLI that speaks Claude Code's protocol without any model: the demo agent, and a source of every
//!   fault that a CLI can have.
//! - [`installed`] finds the real CLI and the Python interpreter that tests drive.
//!
//! Nothing here knows Tiller's own server, store or types: the kit is on the other side of the wire.

pub mod acp;
pub mod agent;
#[cfg(feature = "model")]
pub mod installed;
#[cfg(feature = "model")]
pub mod model;

/// The JSON example in a module's documentation, for tests.
#[cfg(test)]
fn documented_json(source: &str) -> String {
    source
        .lines()
        .skip_while(|line| *line != "//! ```json")
        .skip(1)
        .take_while(|line| *line != "//! ```")
        .map(|line| line.trim_start_matches("//!"))
        .collect()
}
