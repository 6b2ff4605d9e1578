//! A scripted model and a scripted CLI, for tests, benchmarks and demos.
//!
//! - [`model`] is a Messages API server that the real Claude Code CLI takes for the model. A test writes down what the
//!   model will say, and the real CLI really acts on it.
//! - [`installed`] finds the real CLI and the Python interpreter that tests drive.
//!
//! Nothing here knows Tiller's own server, store or types: the kit stands on the other side of the wire.

#[cfg(feature = "model")]
pub mod installed;
#[cfg(feature = "model")]
pub mod model;
