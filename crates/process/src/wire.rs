//! Where the lines go and come from.
//!
//! A transport is a [`Wire`]: lines in, lines out, and the process at the other end. The link knows no more of it, so
//! a new transport is a new function that makes a `Wire`.

mod stdio;
mod websocket;

use std::io;
use std::pin::Pin;

use bytes::Bytes;
use futures_util::Sink;
use futures_util::stream::BoxStream;

use crate::frame::Located;
use crate::spawn::Process;

pub use stdio::stdio;
pub use websocket::{Socket, SocketSender, Sockets, sockets, websocket};

/// A line for the CLI, without its line ending.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    /// The line.
    pub json: Bytes,
    /// Numbers what must reach the CLI once, however often it is sent: a transport that outlives us passes on a number
    /// once. They rise. 0: not numbered.
    pub number: u64,
}

/// Takes lines. Closing it ends the CLI's input.
pub type LineSink = Pin<Box<dyn Sink<Line, Error = io::Error> + Send>>;

/// A connection to a CLI.
pub struct Wire {
    /// The lines that the CLI writes, those together that arrive together.
    pub incoming: BoxStream<'static, Vec<Located>>,
    /// The lines that the CLI reads.
    pub outgoing: LineSink,
    /// The CLI's process.
    pub process: Box<dyn Process>,
}
