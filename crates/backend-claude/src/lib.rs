//! The Claude Code CLI as a backend, and agents that behave like it, such as the demo agent.
//!
//! Knows how the CLI is started and found again, its control protocol, and other drivers of its conversations. It does
//! not know who watches a session, nor how a session is stored.

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
