//! Keeps an agent running when the program that started it is gone.
//!
//! For every run there is a **keeper**: a small process of its own that holds the agent's pipes. It appends what the
//! agent writes to files in the run's folder before it tells anyone, passes on what the agent is to read, and waits for
//! its end. A program talks to it over a socket in that folder; when the program dies, the next one [attaches](attach)
//! and reads on from any position that it chooses. A keeper without a program ends its agent once that has had nothing
//! to do for a while.
//!
//! [`keep`] is the keeper itself: no runtime, one thread. [`start`] and [`attach`] are the other side, and make a
//! [`tiller_process::Wire`]. This crate knows nothing of sessions, and of the agent's words only how a turn ends.

mod callers;
mod client;
mod files;
mod keep;
mod lines;
mod output;
mod turn_ends;
mod waiting;
mod wire;

pub use client::{Keeping, Kept, Lost, Run, attach, first_kept, remove, runs, start};
pub use keep::keep;
