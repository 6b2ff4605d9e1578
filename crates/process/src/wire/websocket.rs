//! WebSocket: the CLI, started with `--sdk-url`, connects to the caller's server.
//!
//! The caller accepts the connection with its own server, and passes it on as a stream and a sink of texts. A CLI that
//! loses its connection connects again: then the caller passes on the new one.

use std::fmt;
use std::io;
use std::pin::Pin;

use bytes::Bytes;
use futures_util::stream::BoxStream;
use futures_util::{Sink, SinkExt, StreamExt, sink, stream};
use tokio::sync::mpsc;

use super::{Line, Wire};
use crate::frame::{self, Framer, Located, MAX_LINE};
use crate::spawn::Spawned;

/// How many lines may wait to be sent while there is no connection, or a slow one.
const OUTGOING: usize = 64;
/// How many lines may wait to be read.
const INCOMING: usize = 64;

/// An accepted WebSocket connection: incoming and outgoing texts.
pub struct Socket {
    incoming: BoxStream<'static, Bytes>,
    outgoing: Pin<Box<dyn Sink<String, Error = io::Error> + Send>>,
}

impl fmt::Debug for Socket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Socket").finish_non_exhaustive()
    }
}

impl Socket {
    /// From the two halves of a connection. The stream ends with the connection.
    pub fn new(
        incoming: impl futures_util::Stream<Item = Bytes> + Send + 'static,
        outgoing: impl Sink<String, Error = io::Error> + Send + 'static,
    ) -> Self {
        Self {
            incoming: incoming.boxed(),
            outgoing: Box::pin(outgoing),
        }
    }
}

/// Passes connections of one CLI on. The server keeps it during the run.
#[derive(Debug, Clone)]
pub struct SocketSender(mpsc::Sender<Socket>);

impl SocketSender {
    /// Passes on a connection, which replaces the previous one. Returned as an error when the run has ended.
    pub async fn attach(&self, socket: Socket) -> Result<(), Socket> {
        self.0.send(socket).await.map_err(|refused| refused.0)
    }
}

/// Receives the connections of one CLI.
#[derive(Debug)]
pub struct Sockets(mpsc::Receiver<Socket>);

/// A channel to pass connections to a run.
pub fn sockets() -> (SocketSender, Sockets) {
    let (sender, receiver) = mpsc::channel(1);
    (SocketSender(sender), Sockets(receiver))
}

/// Connects to a process through the connections that it opens. Its standard output is read as well: a CLI that can't
/// resume reports that only there, and never connects.
pub fn websocket(spawned: Spawned, sockets: Sockets) -> Wire {
    let (outgoing, lines) = mpsc::channel(OUTGOING);
    let (frames, incoming) = mpsc::channel(INCOMING);
    tokio::spawn(pump(sockets, lines, frames));
    let stdout = frame::lines(spawned.stdout, MAX_LINE);
    let socket = stream::unfold(incoming, |mut incoming| async move {
        Some((incoming.recv().await?, incoming))
    });
    // The CLI reads prompts from its input while that is open; it is closed together with the sink.
    let stdin = spawned.stdin;
    let outgoing = sink::unfold((outgoing, stdin), |(outgoing, stdin), line: Line| async move {
        outgoing
            .send(line.json)
            .await
            .map_err(|_| io::Error::from(io::ErrorKind::BrokenPipe))?;
        Ok((outgoing, stdin))
    });
    Wire {
        incoming: both(stdout.boxed(), socket.boxed()),
        outgoing: Box::pin(outgoing),
        process: Box::new(spawned.process),
    }
}

/// Both sources together. The end of standard output is the end of the process, whose connection breaks with it; frames
/// that the connection had already delivered still arrive.
fn both(
    stdout: BoxStream<'static, Vec<Located>>,
    socket: BoxStream<'static, Vec<Located>>,
) -> BoxStream<'static, Vec<Located>> {
    stream::unfold(
        (stdout.fuse(), socket.fuse()),
        |(mut stdout, mut socket)| async move {
            let frames = tokio::select! {
                biased;
                Some(frames) = socket.next() => frames,
                Some(frames) = stdout.next() => frames,
                else => return None,
            };
            Some((frames, (stdout, socket)))
        },
    )
    .boxed()
}

/// Moves lines between the wire and the current connection. Ends when the wire is dropped, or when no connection can
/// arrive any more.
async fn pump(mut sockets: Sockets, mut lines: mpsc::Receiver<Bytes>, frames: mpsc::Sender<Vec<Located>>) {
    // A line that could not be sent because the connection broke is the first one on the next connection.
    let mut unsent: Option<Bytes> = None;
    let mut next = sockets.0.recv().await;
    while let Some(mut socket) = next.take() {
        let mut framer = Framer::new(MAX_LINE);
        loop {
            if let Some(line) = unsent.take() {
                let text = String::from_utf8_lossy(&line);
                if let Err(error) = socket.outgoing.send(format!("{text}\n")).await {
                    tracing::debug!(%error, "the agent's connection broke");
                    unsent = Some(line);
                    break;
                }
            }
            tokio::select! {
                text = socket.incoming.next() => {
                    let Some(text) = text else { break };
                    framer.push(&text);
                    // One text has one or more whole lines; the last one may lack its line ending.
                    let lines = std::iter::from_fn(|| framer.next_frame().or_else(|| framer.finish()));
                    // A connection can't be read again from an earlier position.
                    let lines: Vec<_> = lines.map(|frame| Located { frame, end: 0 }).collect();
                    if !lines.is_empty() && frames.send(lines).await.is_err() {
                        return;
                    }
                }
                line = lines.recv() => {
                    let Some(line) = line else {
                        if let Err(error) = socket.outgoing.close().await {
                            tracing::debug!(%error, "closing the agent's connection failed");
                        }
                        return;
                    };
                    unsent = Some(line);
                }
                newer = sockets.0.recv() => {
                    let Some(newer) = newer else { continue };
                    next = Some(newer);
                    break;
                }
            }
        }
        if next.is_none() {
            next = tokio::select! {
                newer = sockets.0.recv() => newer,
                () = frames.closed() => None,
            };
        }
    }
}
