//! The bytes of one connection. It holds its seat for as long as it lives, and who does not take what is written to them
//! does not live for long. It knows nothing of what the bytes say.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use socket2::{SockRef, TcpKeepalive};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::Sleep;

use super::Seat;

/// Nothing sent for so long: the system asks whether the other side is still there. A stream of events says something more
/// often; a task that is waited for does not.
const ASK_AFTER: Duration = Duration::from_mins(1);

const ASK_AGAIN: Duration = Duration::from_secs(10);

/// A connection that holds its seat, also when it has become a WebSocket.
pub(super) struct Seated {
    stream: TcpStream,
    seat: Arc<Seat>,
    /// How long a write may wait for a reader that takes nothing.
    patience: Duration,
    /// Runs while a write waits.
    stuck: Option<Pin<Box<Sleep>>>,
    /// Runs while something is arriving.
    late: Option<Pin<Box<Sleep>>>,
}

impl Seated {
    pub(super) fn new(stream: TcpStream, seat: Arc<Seat>, patience: Duration) -> Self {
        let prepared = prepare(&stream);
        // Much of what is written lies in the system's memory, where no write of ours waits for it: over a link that was cut
        // the system would try for a quarter of an hour, and for a reader that has stopped, for ever.
        #[cfg(target_os = "linux")]
        let prepared = prepared.and_then(|()| SockRef::from(&stream).set_tcp_user_timeout(Some(patience)));
        if let Err(error) = prepared {
            tracing::debug!(%error, "a connection is not set up as it should be");
        }
        Self {
            stream,
            seat,
            late: None,
            patience,
            stuck: None,
        }
    }

    /// The outcome of a write, or its end if there has been no progress for too long.
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
        let error = "the other side does not read";
        Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, error)))
    }
}

fn prepare(stream: &TcpStream) -> io::Result<()> {
    // Small frames must not wait for the acknowledgement of the last one: that costs 40 ms each.
    stream.set_nodelay(true)?;
    let questions = TcpKeepalive::new().with_time(ASK_AFTER).with_interval(ASK_AGAIN);
    SockRef::from(stream).set_tcp_keepalive(&questions)
}

impl AsyncRead for Seated {
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
            if bytes > 0 && !self.seat.meter.read(bytes) {
                let error = "too much is under way that is not finished";
                return Poll::Ready(Err(io::Error::new(io::ErrorKind::OutOfMemory, error)));
            }
            return read;
        }
        let Some(deadline) = self.seat.meter.deadline() else {
            self.late = None;
            return Poll::Pending;
        };
        let late = self
            .late
            .get_or_insert_with(|| Box::pin(tokio::time::sleep_until(deadline)));
        ready!(late.as_mut().poll(context));
        let error = "what has begun to come does not end";
        Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, error)))
    }
}

impl AsyncWrite for Seated {
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

    use super::super::Guests;
    use super::*;

    /// What can't be tried on one machine: a link that is cut.
    #[tokio::test]
    async fn the_system_is_told_when_to_give_up() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let address = listener.local_addr().unwrap();
        let (_client, accepted) = tokio::join!(TcpStream::connect(address), listener.accept());
        let seat = Arc::new(Guests::default()).admit(address.ip(), false).unwrap();
        let patience = Duration::from_secs(30);
        let seated = Seated::new(accepted.unwrap().0, seat, patience);
        let socket = SockRef::from(&seated.stream);
        assert_eq!(socket.tcp_user_timeout().unwrap(), Some(patience));
        assert!(socket.keepalive().unwrap());
    }
}
