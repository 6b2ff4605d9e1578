//! Standard output: whole lines, in order, one writer.

use serde_json::Value;
use tokio::io::{AsyncWrite, AsyncWriteExt};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;

/// Passes lines to the writer. A line is passed on whole or not at all, so a turn may be dropped at any point.
#[derive(Clone, Debug)]
pub(crate) struct Output {
    lines: mpsc::Sender<Item>,
}

#[derive(Debug)]
enum Item {
    Bytes(Vec<u8>),
    /// Answered when everything before it is written.
    Flush(oneshot::Sender<()>),
}

/// How many lines may wait for a slow reader, as in a full pipe.
const LINES_AHEAD: usize = 64;

impl Output {
    pub(crate) fn spawn(mut stdout: impl AsyncWrite + Unpin + Send + 'static) -> (Self, JoinHandle<()>) {
        let (lines, mut waiting) = mpsc::channel(LINES_AHEAD);
        let writing = tokio::spawn(async move {
            let mut batch = Vec::new();
            let mut flushes = Vec::new();
            while let Some(item) = waiting.recv().await {
                // Everything that waits is written together: a write per line would slow a flood down.
                let mut next = Some(item);
                while let Some(item) = next {
                    match item {
                        Item::Bytes(bytes) => batch.extend_from_slice(&bytes),
                        Item::Flush(done) => flushes.push(done),
                    }
                    next = waiting.try_recv().ok();
                }
                if stdout.write_all(&batch).await.is_err() || stdout.flush().await.is_err() {
                    // Nobody reads any more; dropping the receiver tells all senders.
                    return;
                }
                batch.clear();
                for done in flushes.drain(..) {
                    if done.send(()).is_err() {
                        // The caller has gone.
                    }
                }
            }
        });
        (Self { lines }, writing)
    }

    pub(crate) async fn line(&self, message: Value) {
        let mut line = message.to_string().into_bytes();
        line.push(b'\n');
        self.raw(line).await;
    }

    /// Raw bytes, for scripts that break the format.
    pub(crate) async fn raw(&self, bytes: Vec<u8>) {
        if self.lines.send(Item::Bytes(bytes)).await.is_err() {
            // `closed` ends the conversation; output until then has no reader.
        }
    }

    /// Returns when everything so far is written, or can't be.
    pub(crate) async fn flushed(&self) {
        let (done, is_done) = oneshot::channel();
        if self.lines.send(Item::Flush(done)).await.is_ok() && is_done.await.is_err() {
            // The writer has stopped; there is nothing to wait for.
        }
    }

    /// Returns when nobody reads the output any more.
    pub(crate) async fn closed(&self) {
        self.lines.closed().await;
    }
}
