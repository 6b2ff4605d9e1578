//! Transports of lines.
//!
//! A transport is a [`Wire`]: lines in, lines out, and the process at the other end. Readers and writers know nothing
//! else of it, so a new transport is a new function that returns a `Wire`.

mod stdio;
mod websocket;

use std::fmt;
use std::io;
use std::pin::Pin;

use bytes::Bytes;
use futures_util::Sink;
use futures_util::stream::BoxStream;

use crate::frame::Located;
use crate::spawn::Process;

pub use stdio::stdio;
pub use websocket::{Socket, SocketSender, Sockets, sockets, websocket};

/// A line for the agent, without its line ending.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    /// The line.
    pub json: Bytes,
    /// Numbers lines that must reach the agent once, even if they are sent again: a transport that outlives us forwards
    /// each number once. Numbers rise. 0: not numbered.
    pub number: u64,
}

/// Accepts lines. Closing it ends the agent's input.
pub type LineSink = Pin<Box<dyn Sink<Line, Error = io::Error> + Send>>;

/// A connection to an agent.
pub struct Wire {
    /// The lines that the agent writes, in batches as they arrive.
    pub incoming: BoxStream<'static, Vec<Located>>,
    /// The lines that the agent reads.
    pub outgoing: LineSink,
    /// The agent's process.
    pub process: Box<dyn Process>,
}

impl fmt::Debug for Wire {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Wire")
            .field("pid", &self.process.pid())
            .finish_non_exhaustive()
    }
}
