//! From a listening socket to requests: how many connections, how large a head, how long it may take, and how long an answer
//! waits for someone to read it.

mod seated;

use std::collections::HashMap;
use std::convert::Infallible;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::ConnectInfo;
use axum::http::header::ACCEPT_LANGUAGE;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::TcpListener;
use tower::Service;

use crate::app::Access;
use crate::limit::group;
use seated::Seated;

const MAX_CONNECTIONS: usize = 1024;
const MAX_CONNECTIONS_OF_ONE_ADDRESS: usize = 256;

/// The head of a request: method, path and headers together.
pub(crate) const MAX_HEAD: usize = 64 << 10;

/// Someone who takes longer to say what they want does not want anything good.
const HEAD_TIME: Duration = Duration::from_secs(10);

/// Who has not taken a byte of what was written to them for so long does not read. As long as a WebSocket's door waits.
const STUCK_WRITE: Duration = Duration::from_secs(30);

/// How long to wait when the system has no more file descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Accepts connections for ever.
pub(crate) async fn listen(listener: TcpListener, router: Router, access: Arc<Access>) -> io::Result<()> {
    welcome(listener, router, access, Arc::default(), STUCK_WRITE).await
}

/// As [`listen`], with `patience` for those who don't read.
async fn welcome(
    listener: TcpListener,
    router: Router,
    access: Arc<Access>,
    guests: Arc<Guests>,
    patience: Duration,
) -> io::Result<()> {
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
        let seated = Seated::new(stream, seat, patience);
        tokio::spawn(converse(seated, address, router.clone(), Arc::clone(&access)));
    }
}

async fn converse(stream: Seated, address: SocketAddr, router: Router, access: Arc<Access>) {
    let service = service_fn(move |request: hyper::Request<Incoming>| {
        let mut router = router.clone();
        let mut request = request.map(Body::new);
        let client = access.proxies.client(address, request.headers());
        let https = access.proxies.is_https(address.ip(), request.headers());
        request.extensions_mut().insert(ConnectInfo(client));
        request.extensions_mut().insert(https);
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

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use axum::routing::get;
    use bytes::Bytes;
    use futures_util::stream;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpStream;
    use tokio::sync::watch;

    use super::*;
    use crate::error::Language;
    use crate::guard::HostPolicy;
    use crate::proxy::TrustedProxies;

    /// Short, but longer than a machine with much to do leaves someone waiting who reads.
    const PATIENCE: Duration = Duration::from_millis(300);

    async fn ask(address: SocketAddr, path: &str) -> TcpStream {
        let mut client = TcpStream::connect(address).await.unwrap();
        let request = format!("GET {path} HTTP/1.1\r\nhost: {address}\r\n\r\n");
        client.write_all(request.as_bytes()).await.unwrap();
        client
    }

    async fn hears(client: &mut TcpStream, words: &str) {
        let mut heard = Vec::new();
        while !heard.ends_with(words.as_bytes()) {
            assert_ne!(client.read_buf(&mut heard).await.unwrap(), 0, "cut off");
        }
    }

    /// The server's address, and its guests.
    async fn serve(router: Router) -> (SocketAddr, Arc<Guests>) {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let address = listener.local_addr().unwrap();
        let access = Access {
            hosts: HostPolicy::new(address, &[]),
            proxies: TrustedProxies::default(),
            language: Language::English,
            task_starts_per_minute: 10,
            instance: "test".to_owned(),
            approval: tiller_core::Approval::Ask,
        };
        let guests = Arc::new(Guests::default());
        tokio::spawn(welcome(
            listener,
            router,
            Arc::new(access),
            Arc::clone(&guests),
            PATIENCE,
        ));
        (address, guests)
    }

    #[tokio::test]
    async fn who_does_not_read_is_cut_off_and_who_has_nothing_to_read_is_not() {
        let (speak, mut spoken) = watch::channel("first");
        spoken.mark_changed();
        let now_and_then = move || {
            let words = stream::unfold(spoken.clone(), |mut spoken| async move {
                spoken.changed().await.ok()?;
                let word = *spoken.borrow_and_update();
                Some((Ok::<_, Infallible>(word), spoken))
            });
            async move { Body::from_stream(words) }
        };
        let without_end = || async {
            let piece = Bytes::from(vec![b'.'; 64 << 10]);
            Body::from_stream(stream::repeat(Ok::<_, Infallible>(piece)))
        };
        let router = Router::new()
            .route("/quiet", get(now_and_then))
            .route("/loud", get(without_end));
        let (address, guests) = serve(router).await;
        let seats = || guests.seats.lock().unwrap().0;

        let mut quiet = ask(address, "/quiet").await;
        hears(&mut quiet, "first\r\n").await;
        let stuck = ask(address, "/loud").await;
        stuck.readable().await.unwrap();
        assert_eq!(seats(), 2);
        // The quiet one has then waited for longer than a write may.
        let deadline = tokio::time::Instant::now() + Duration::from_secs(10);
        while seats() > 1 {
            assert!(tokio::time::Instant::now() < deadline, "never cut off");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        speak.send("second").unwrap();
        hears(&mut quiet, "second\r\n").await;
    }

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
