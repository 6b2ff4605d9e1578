//! Processes that communicate in lines: starts them, ends them with everything that they started, splits their output
//! into lines of bounded length, and transports the lines.
//!
//! It does not know what the lines mean, nor who needs them.

#![warn(missing_debug_implementations)]

mod find;
mod frame;
mod hosts;
mod launch;
mod limits;
mod peer;
mod shield;
#[cfg(target_os = "linux")]
mod slim;
mod spawn;
mod tree;
mod usage;
mod wire;

#[cfg(all(fuzzing, target_os = "linux"))]
#[doc(hidden)]
pub mod fuzzing {
    pub use crate::shield::fuzz_request as proxy_request;
}

pub use find::{find_program, inherited_environment};
pub use frame::{Frame, Framer, Located, MAX_LINE, lines};
pub use hosts::{Cover, HostPattern, InvalidHost, covered as host_covered};
pub use launch::{Launch, Sandbox, WorkingDirectory};
pub use limits::{given_open_files, limit_open_files, raise_open_files, restore_open_files};
pub use peer::is_own_socket;
pub use shield::{
    Shield, ShieldMode, ShieldState, is_launcher as is_shield_launcher, launch as launch_shielded,
};
#[cfg(target_os = "linux")]
pub use slim::let_go_of_code;
pub use spawn::{Ended, LocalProcess, Process, Spawned, StderrCallback, spawn};
pub use tree::{RUN_MARK, SharedTree, Tree, TreeIdentity};
pub use usage::{Processes, Sample, Stat, is_running};
pub use wire::{Line, LineSink, Socket, SocketSender, Sockets, Wire, sockets, stdio, websocket};
