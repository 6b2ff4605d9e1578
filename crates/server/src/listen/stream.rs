//! The byte stream of one connection. It holds the connection's slot as long as it lives, and ends if the client does
//! not read. It does not look at the content.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use socket2::{SockRef, TcpKeepalive};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::Sleep;

use super::Slot;

/// After this time without traffic the system probes whether the client is still there. A stream of events has traffic
/// more often; a task that is waited for does not.
const ASK_AFTER: Duration = Duration::from_mins(1);

const ASK_AGAIN: Duration = Duration::from_secs(10);

/// A connection that holds its slot, also as a WebSocket.
pub(super) struct SlottedStream {
    stream: TcpStream,
    slot: Arc<Slot>,
    /// How long a write may wait for a client that does not read.
    patience: Duration,
    /// Runs while a write waits.
    stuck: Option<Pin<Box<Sleep>>>,
    /// Runs while a message is arriving.
    late: Option<Pin<Box<Sleep>>>,
}

impl SlottedStream {
    pub(super) fn new(stream: TcpStream, slot: Arc<Slot>, patience: Duration) -> Self {
        let prepared = prepare(&stream);
        // Written bytes are buffered by the system, where no write of ours waits for them: over a broken link the
        // system would retry for a quarter of an hour, and for a client that stopped reading, forever.
        #[cfg(target_os = "linux")]
        let prepared = prepared.and_then(|()| SockRef::from(&stream).set_tcp_user_timeout(Some(patience)));
        if let Err(error) = prepared {
            tracing::debug!(%error, "can't set the options of a connection");
        }
        Self {
            stream,
            slot,
            late: None,
            patience,
            stuck: None,
        }
    }

    /// The outcome of a write, or an error if there was no progress for too long.
    fn in_time<T>(&mut self, context: &mut Context<'_>, outcome: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if outcome.is_ready() {
            self.stuck = None;
            return outcome;
        }
        let patience = self.patience;
        let stuck = self
            .stuck
            .get_or_insert_with(|| Box::pin(tokio::time::sleep(patience)));
        ready!(stuck.as_mut().poll(context));
        let error = "the client does not read";
        Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, error)))
    }
}

fn prepare(stream: &TcpStream) -> io::Result<()> {
    // Small frames must not wait for the acknowledgement of the previous one: that costs 40 ms each.
    stream.set_nodelay(true)?;
    let questions = TcpKeepalive::new().with_time(ASK_AFTER).with_interval(ASK_AGAIN);
    SockRef::from(stream).set_tcp_keepalive(&questions)
}

impl AsyncRead for SlottedStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let read = Pin::new(&mut self.stream).poll_read(context, buffer);
        if read.is_ready() {
            self.late = None;
            let bytes = buffer.filled().len() - before;
            if bytes > 0 && !self.slot.meter.read(bytes) {
                let error = "too many unfinished messages";
                return Poll::Ready(Err(io::Error::new(io::ErrorKind::OutOfMemory, error)));
            }
            return read;
        }
        let Some(deadline) = self.slot.meter.deadline() else {
            self.late = None;
            return Poll::Pending;
        };
        let late = self
            .late
            .get_or_insert_with(|| Box::pin(tokio::time::sleep_until(deadline)));
        ready!(late.as_mut().poll(context));
        let error = "an unfinished message does not arrive";
        Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, error)))
    }
}

impl AsyncWrite for SlottedStream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.in_time(context, written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(context, slices);
        self.in_time(context, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::net::Ipv4Addr;

    use tokio::net::TcpListener;

    use super::super::Connections;
    use super::*;

    /// A broken link can't be tested on one machine, so the socket's options are.
    #[tokio::test]
    async fn the_system_is_told_when_to_give_up() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let address = listener.local_addr().unwrap();
        let (_client, accepted) = tokio::join!(TcpStream::connect(address), listener.accept());
        let slot = Arc::new(Connections::default())
            .admit(address.ip(), false)
            .unwrap();
        let patience = Duration::from_secs(30);
        let stream = SlottedStream::new(accepted.unwrap().0, slot, patience);
        let socket = SockRef::from(&stream.stream);
        assert_eq!(socket.tcp_user_timeout().unwrap(), Some(patience));
        assert!(socket.keepalive().unwrap());
    }
}
