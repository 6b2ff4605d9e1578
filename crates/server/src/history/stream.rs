//! A response body that is written by a thread that may block.

use std::io::{self, Write};

use axum::body::Body;
use bytes::Bytes;
use futures_util::stream;
use tokio::sync::mpsc;

/// Bytes that are sent at once, and how many such pieces may wait for a slow client.
const PIECE: usize = 64 << 10;
const PIECES: usize = 4;

/// A body with what `write` writes. An error closes the connection, so that a client notices an incomplete file.
pub(super) fn written_by(write: impl FnOnce(&mut dyn Write) -> io::Result<()> + Send + 'static) -> Body {
    let (pieces, mut body) = mpsc::channel::<io::Result<Bytes>>(PIECES);
    tokio::task::spawn_blocking(move || {
        let mut out = Pieces {
            buffer: Vec::with_capacity(PIECE),
            pieces: pieces.clone(),
        };
        if let Err(error) = write(&mut out).and_then(|()| out.flush()) {
            // Sending fails if the client has disconnected, which is the usual reason for the error.
            drop(pieces.blocking_send(Err(error)));
        }
    });
    Body::from_stream(stream::poll_fn(move |context| body.poll_recv(context)))
}

struct Pieces {
    buffer: Vec<u8>,
    pieces: mpsc::Sender<io::Result<Bytes>>,
}

impl Write for Pieces {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.buffer.extend_from_slice(bytes);
        if self.buffer.len() >= PIECE {
            self.flush()?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        if self.buffer.is_empty() {
            return Ok(());
        }
        let piece = std::mem::replace(&mut self.buffer, Vec::with_capacity(PIECE));
        self.pieces
            .blocking_send(Ok(piece.into()))
            .map_err(|_| io::ErrorKind::BrokenPipe.into())
    }
}
