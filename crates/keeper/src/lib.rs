//! Keeps an agent running when the program that started it is gone.
//!
//! Every run has a **keeper**: a small process that holds the agent's pipes. It appends the agent's output to files in
//! the run's folder before it reports it, forwards the agent's input, and waits for the agent's end. A program talks to
//! the keeper over a socket in that folder; when the program dies, the next one [attaches](attach) and reads on from
//! any position. A keeper without a program ends its agent once the agent has been idle for a while.
//!
//! [`keep`] is the keeper itself: no runtime, one thread. [`start`] and [`attach`] are the program's side, and return a
//! [`tiller_process::Wire`]. This crate does not know sessions, and of the agent's output only how a turn ends.

mod callers;
mod client;
mod files;
mod keep;
mod lines;
mod long_lines;
mod output;
mod signs;
mod waiting;
mod wire;

#[cfg(fuzzing)]
#[doc(hidden)]
pub mod fuzzing {
    pub use crate::wire::read_everything as frames;
}

pub use client::{
    AttachError, KeeperConfig, KeeperHandle, KeptAgent, attach, first_kept, remove, runs, start,
};
pub use keep::keep;
pub use signs::Signs;
