//! From a listening socket to requests: how many connections, how large a head, how long it may take.

use std::collections::HashMap;
use std::convert::Infallible;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::ConnectInfo;
use axum::http::header::ACCEPT_LANGUAGE;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tower::Service;

use crate::app::Access;
use crate::limit::group;

const MAX_CONNECTIONS: usize = 1024;
const MAX_CONNECTIONS_OF_ONE_ADDRESS: usize = 256;

/// The head of a request: method, path and headers together.
pub(crate) const MAX_HEAD: usize = 64 << 10;

/// Someone who takes longer to say what they want does not want anything good.
const HEAD_TIME: Duration = Duration::from_secs(10);

/// How long to wait when the system has no more file descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Accepts connections for ever.
pub(crate) async fn listen(listener: TcpListener, router: Router, access: Arc<Access>) -> io::Result<()> {
    let guests = Arc::new(Guests::default());
    loop {
        let (stream, address) = match listener.accept().await {
            Ok(accepted) => accepted,
            // What went wrong is one connection's trouble, or passes.
            Err(error) => {
                tracing::warn!(%error, "can't take a connection");
                tokio::time::sleep(ACCEPT_PAUSE).await;
                continue;
            }
        };
        let is_proxy = access.proxies.contains(address.ip());
        let Some(seat) = guests.admit(address.ip(), is_proxy) else {
            tracing::warn!(%address, "too many connections; one more is refused");
            continue;
        };
        // Small frames must not wait for the acknowledgement of the last one: that costs 40 ms each.
        if let Err(error) = stream.set_nodelay(true) {
            tracing::debug!(%error, "can't set TCP_NODELAY");
        }
        let seated = Seated { stream, _seat: seat };
        tokio::spawn(converse(seated, address, router.clone(), Arc::clone(&access)));
    }
}

async fn converse(stream: Seated, address: SocketAddr, router: Router, access: Arc<Access>) {
    let service = service_fn(move |request: hyper::Request<Incoming>| {
        let mut router = router.clone();
        let mut request = request.map(Body::new);
        let client = access.proxies.client(address, request.headers());
        request.extensions_mut().insert(ConnectInfo(client));
        let headers = request.headers_mut();
        headers
            .entry(ACCEPT_LANGUAGE)
            .or_insert_with(|| access.language.tag());
        async move {
            let Ok(response) = router.call(request).await;
            Ok::<_, Infallible>(response)
        }
    });
    let connection = hyper::server::conn::http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIME)
        .max_buf_size(MAX_HEAD)
        .serve_connection(TokioIo::new(stream), service)
        .with_upgrades();
    if let Err(error) = connection.await {
        tracing::debug!(%error, "a connection ended badly");
    }
}

/// Who is connected. A std mutex: held to count, never across an await.
#[derive(Default)]
struct Guests {
    seats: Mutex<(usize, HashMap<IpAddr, usize>)>,
}

/// One connection's place, given back when it ends.
struct Seat {
    guests: Arc<Guests>,
    address: IpAddr,
}

impl Guests {
    /// Behind a proxy are many clients, so that only the number of all connections limits it.
    fn admit(self: &Arc<Self>, address: IpAddr, is_proxy: bool) -> Option<Seat> {
        let address = group(address);
        let mut seats = self.seats.lock().unwrap_or_else(PoisonError::into_inner);
        let (all, by_address) = &mut *seats;
        let of_this = by_address.entry(address).or_default();
        let too_many = !is_proxy && *of_this >= MAX_CONNECTIONS_OF_ONE_ADDRESS;
        if *all >= MAX_CONNECTIONS || too_many {
            return None;
        }
        *all += 1;
        *of_this += 1;
        Some(Seat {
            guests: Arc::clone(self),
            address,
        })
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        let mut seats = self.guests.seats.lock().unwrap_or_else(PoisonError::into_inner);
        let (all, by_address) = &mut *seats;
        *all = all.saturating_sub(1);
        if let Some(of_this) = by_address.get_mut(&self.address) {
            *of_this -= 1;
            if *of_this == 0 {
                by_address.remove(&self.address);
            }
        }
    }
}

/// A connection that holds its seat, also when it has become a WebSocket.
struct Seated {
    stream: TcpStream,
    _seat: Seat,
}

impl AsyncRead for Seated {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl AsyncWrite for Seated {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(context, slices)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_has_so_many_seats_and_gives_them_back() {
        let guests = Arc::new(Guests::default());
        let (one, other) = ("127.0.0.1".parse().unwrap(), "127.0.0.2".parse().unwrap());
        let mut seats: Vec<_> = (0..MAX_CONNECTIONS_OF_ONE_ADDRESS)
            .map(|_| guests.admit(one, false).unwrap())
            .collect();
        assert!(guests.admit(one, false).is_none());
        assert!(guests.admit(other, false).is_some());
        assert!(guests.admit(one, true).is_some(), "a proxy may have more");
        seats.pop();
        assert!(guests.admit(one, false).is_some());
        drop(seats);
        assert_eq!(*guests.seats.lock().unwrap(), (0, HashMap::new()));
    }

    #[test]
    fn the_house_has_so_many_seats() {
        let guests = Arc::new(Guests::default());
        let address = |number: usize| IpAddr::from([10, 0, 0, u8::try_from(number / 200).unwrap()]);
        let seats: Vec<_> = (0..MAX_CONNECTIONS)
            .map(|number| guests.admit(address(number), false).unwrap())
            .collect();
        assert!(guests.admit("10.1.0.0".parse().unwrap(), false).is_none());
        drop(seats);
        assert!(guests.admit("10.1.0.0".parse().unwrap(), false).is_some());
    }
}
