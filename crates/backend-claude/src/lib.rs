//! The Claude Code CLI as a backend, and everything that speaks like it: the demo agent does.
//!
//! Knows how the CLI is started and found again, its control protocol, and who else may drive one of its conversations.
//! It does not know who watches a session, nor how a session is kept.

mod abilities;
mod backend;
#[cfg(target_os = "linux")]
mod driver;
mod inquiry;
mod launcher;
mod lease;
mod meaning;
mod options;
mod relay;
mod running;
mod runs;
mod sandbox;

pub use backend::ClaudeBackend;
pub use lease::folder as lease_folder;
