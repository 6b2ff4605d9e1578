//! Accepts connections: limits their number, the size of a request's head, how long the head may take, and how long a
//! response may wait for its reader.

mod meter;
mod stream;

use std::collections::{BTreeMap, HashMap};
use std::convert::Infallible;
use std::fmt;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::ConnectInfo;
use axum::http::header::ACCEPT_LANGUAGE;
use futures_util::future::try_join_all;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::TcpListener;
use tokio::sync::Notify;
use tower::Service;

use crate::app::Access;
use crate::limit::group;
pub(crate) use meter::{Budgets, Meter};
use stream::SlottedStream;

const MAX_CONNECTIONS: usize = 1024;
const MAX_CONNECTIONS_OF_ONE_ADDRESS: usize = 256;

/// The head of a request: method, path and headers together.
pub(crate) const MAX_HEAD: usize = 64 << 10;

/// A client that takes longer to send a request's head is not honest.
const HEAD_TIME: Duration = Duration::from_secs(10);

/// A client that has not read a byte for this long does not read. The WebSocket doors wait as long.
const STUCK_WRITE: Duration = Duration::from_secs(30);

/// How long to wait when the system has no more file descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Accepts connections forever.
pub(crate) async fn listen(
    listeners: Vec<TcpListener>,
    router: Router,
    access: Arc<Access>,
) -> io::Result<()> {
    let connections = Arc::<Connections>::default();
    let all = listeners.into_iter().map(|listener| {
        let (access, connections) = (Arc::clone(&access), Arc::clone(&connections));
        accept_all(listener, router.clone(), access, connections, STUCK_WRITE)
    });
    try_join_all(all).await.map(drop)
}

/// As [`listen`], with `patience` for clients that don't read.
async fn accept_all(
    listener: TcpListener,
    router: Router,
    access: Arc<Access>,
    connections: Arc<Connections>,
    patience: Duration,
) -> io::Result<()> {
    loop {
        let (stream, address) = match listener.accept().await {
            Ok(accepted) => accepted,
            // An accept error concerns one connection, or is temporary.
            Err(error) => {
                tracing::warn!(%error, "can't take a connection");
                tokio::time::sleep(ACCEPT_PAUSE).await;
                continue;
            }
        };
        let is_proxy = access.proxies.contains(address.ip());
        let Some(slot) = connections.admit(address.ip(), is_proxy) else {
            tracing::warn!(%address, "too many connections; one more is refused");
            continue;
        };
        let stream = SlottedStream::new(stream, Arc::clone(&slot), patience);
        tokio::spawn(serve_connection(
            stream,
            slot,
            address,
            router.clone(),
            Arc::clone(&access),
        ));
    }
}

async fn serve_connection(
    stream: SlottedStream,
    slot: Arc<Slot>,
    address: SocketAddr,
    router: Router,
    access: Arc<Access>,
) {
    let seat_of_requests = Arc::clone(&slot);
    let service = service_fn(move |request: hyper::Request<Incoming>| {
        let mut router = router.clone();
        let mut request = request.map(Body::new);
        let client = access.proxies.client(address, request.headers());
        let https = access.proxies.is_https(address.ip(), request.headers());
        request.extensions_mut().insert(ConnectInfo(client));
        request.extensions_mut().insert(https);
        let slot = Arc::clone(&seat_of_requests);
        request.extensions_mut().insert(Arc::clone(&slot));
        let headers = request.headers_mut();
        headers
            .entry(ACCEPT_LANGUAGE)
            .or_insert_with(|| access.language.tag());
        async move {
            // Limits clients without a credential only: others keep their connections anyway.
            let was_stranger = !slot.has_credential();
            if was_stranger {
                slot.is_busy(true);
            }
            let Ok(response) = router.call(request).await;
            slot.meter.finished();
            if was_stranger && !slot.has_credential() {
                slot.is_busy(false);
            }
            Ok::<_, Infallible>(response)
        }
    });
    let connection = hyper::server::conn::http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIME)
        .max_buf_size(MAX_HEAD)
        .serve_connection(TokioIo::new(stream), service)
        .with_upgrades();
    let evicted = Arc::clone(&slot.evicted);
    // The stream holds its slot as long as it lives, also as a WebSocket.
    drop(slot);
    tokio::select! {
        ended = connection => {
            if let Err(error) = ended {
                tracing::debug!(%error, "a connection ended badly");
            }
        }
        () = evicted.notified() => tracing::debug!(%address, "closed an idle connection without a credential to accept another"),
    }
}

/// The open connections. A std mutex: held to count, never across an await.
#[derive(Default)]
struct Connections {
    slots: Mutex<Slots>,
}

#[derive(Default)]
struct Slots {
    /// All connections by number, the oldest first.
    taken: BTreeMap<u64, TakenSlot>,
    by_address: HashMap<IpAddr, usize>,
    next: u64,
}

struct TakenSlot {
    address: IpAddr,
    /// How to close the connection, while it has no credential and no request.
    idle_unauthenticated: Option<Arc<Notify>>,
}

/// The slot of a connection, released when it ends.
pub(crate) struct Slot {
    connections: Arc<Connections>,
    number: u64,
    evicted: Arc<Notify>,
    has_credential: AtomicBool,
    /// Counts what the client has begun to send.
    pub(crate) meter: Meter,
}

impl Connections {
    /// If all slots are taken, the oldest idle connection without a credential is closed, so that idle strangers can't
    /// block the server. A proxy has many clients, so it is limited only by the total number of connections.
    fn admit(self: &Arc<Self>, address: IpAddr, is_proxy: bool) -> Option<Arc<Slot>> {
        let address = group(address);
        let mut slots = self.lock();
        let of_this = slots.by_address.get(&address).copied().unwrap_or(0);
        if !is_proxy && of_this >= MAX_CONNECTIONS_OF_ONE_ADDRESS {
            slots.evict(|taken| taken.address == address)?;
        }
        if slots.taken.len() >= MAX_CONNECTIONS {
            slots.evict(|_| true)?;
        }
        let evicted = Arc::new(Notify::new());
        let number = slots.next;
        slots.next += 1;
        *slots.by_address.entry(address).or_default() += 1;
        let idle_unauthenticated = Some(Arc::clone(&evicted));
        slots.taken.insert(
            number,
            TakenSlot {
                address,
                idle_unauthenticated,
            },
        );
        Some(Arc::new(Slot {
            connections: Arc::clone(self),
            number,
            evicted,
            has_credential: AtomicBool::new(false),
            meter: Meter::default(),
        }))
    }

    fn lock(&self) -> MutexGuard<'_, Slots> {
        // Consistent between any two statements.
        self.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Slots {
    /// Closes the oldest idle connection without a credential. `None` if there is none.
    fn evict(&mut self, may_go: impl Fn(&TakenSlot) -> bool) -> Option<()> {
        let is_idle = |taken: &&TakenSlot| taken.idle_unauthenticated.is_some() && may_go(taken);
        let (&number, _) = self.taken.iter().find(|(_, taken)| is_idle(taken))?;
        let idle = self.free(number)?;
        idle.notify_one();
        Some(())
    }

    fn free(&mut self, number: u64) -> Option<Arc<Notify>> {
        let taken = self.taken.remove(&number)?;
        if let Some(of_this) = self.by_address.get_mut(&taken.address) {
            *of_this -= 1;
            if *of_this == 0 {
                self.by_address.remove(&taken.address);
            }
        }
        taken.idle_unauthenticated
    }
}

impl fmt::Debug for Slot {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_tuple("Slot").field(&self.number).finish()
    }
}

impl Slot {
    /// The client has shown a credential: its connection is kept from now on.
    pub(crate) fn set_authenticated(&self) {
        if !self.has_credential.swap(true, Ordering::Relaxed) {
            self.set_idle(None);
        }
    }

    fn has_credential(&self) -> bool {
        self.has_credential.load(Ordering::Relaxed)
    }

    /// Whether a request is being answered.
    fn is_busy(&self, busy: bool) {
        self.set_idle((!busy).then(|| Arc::clone(&self.evicted)));
    }

    fn set_idle(&self, idle_unauthenticated: Option<Arc<Notify>>) {
        if let Some(taken) = self.connections.lock().taken.get_mut(&self.number) {
            taken.idle_unauthenticated = idle_unauthenticated;
        }
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        // Nothing to do if the connection was evicted.
        self.connections.lock().free(self.number);
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

    /// Short, but longer than a busy machine delays a client that reads.
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

    /// The server's address, and its connections.
    async fn serve(router: Router) -> (SocketAddr, Arc<Connections>) {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let address = listener.local_addr().unwrap();
        let access = Access {
            hosts: HostPolicy::new(&[address], false, &[]),
            proxies: TrustedProxies::default(),
            language: Language::English,
            task_starts_per_minute: 10,
            instance: "test".to_owned(),
            approval: tiller_core::Approval::Ask,
        };
        let connections = Arc::new(Connections::default());
        tokio::spawn(accept_all(
            listener,
            router,
            Arc::new(access),
            Arc::clone(&connections),
            PATIENCE,
        ));
        (address, connections)
    }

    #[tokio::test]
    async fn a_client_that_does_not_read_is_disconnected_and_an_idle_one_is_not() {
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
        let (address, connections) = serve(router).await;
        let slots = || connections.lock().taken.len();

        let mut quiet = ask(address, "/quiet").await;
        hears(&mut quiet, "first\r\n").await;
        let stuck = ask(address, "/loud").await;
        stuck.readable().await.unwrap();
        assert_eq!(slots(), 2);
        // By then the idle client has waited longer than a write may.
        let deadline = tokio::time::Instant::now() + Duration::from_secs(10);
        while slots() > 1 {
            assert!(tokio::time::Instant::now() < deadline, "never cut off");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        speak.send("second").unwrap();
        hears(&mut quiet, "second\r\n").await;
    }

    /// Slots of clients that have shown a credential.
    fn taken(connections: &Arc<Connections>, addresses: impl Iterator<Item = IpAddr>) -> Vec<Arc<Slot>> {
        let slots = addresses.map(|address| connections.admit(address, false).unwrap());
        slots.inspect(|slot| slot.set_authenticated()).collect()
    }

    #[test]
    fn connections_of_one_address_are_limited_and_released() {
        let connections = Arc::new(Connections::default());
        let (one, other) = ("127.0.0.1".parse().unwrap(), "127.0.0.2".parse().unwrap());
        let mut slots = taken(
            &connections,
            std::iter::repeat_n(one, MAX_CONNECTIONS_OF_ONE_ADDRESS),
        );
        assert!(connections.admit(one, false).is_none());
        assert!(connections.admit(other, false).is_some());
        assert!(connections.admit(one, true).is_some(), "a proxy may have more");
        slots.pop();
        assert!(connections.admit(one, false).is_some());
        drop(slots);
        assert!(connections.lock().taken.is_empty() && connections.lock().by_address.is_empty());
    }

    #[test]
    fn the_total_number_of_connections_is_limited() {
        let connections = Arc::new(Connections::default());
        let address = |number: usize| IpAddr::from([10, 0, 0, u8::try_from(number / 200).unwrap()]);
        let slots = taken(&connections, (0..MAX_CONNECTIONS).map(address));
        assert!(connections.admit("10.1.0.0".parse().unwrap(), false).is_none());
        drop(slots);
        assert!(connections.admit("10.1.0.0".parse().unwrap(), false).is_some());
    }

    #[test]
    fn idle_connections_without_a_credential_are_evicted_and_others_are_not() {
        let connections = Arc::new(Connections::default());
        let address: IpAddr = "127.0.0.1".parse().unwrap();
        let slots: Vec<_> = (0..MAX_CONNECTIONS_OF_ONE_ADDRESS)
            .map(|_| connections.admit(address, false).unwrap())
            .collect();
        slots[0].set_authenticated();
        slots[1].is_busy(true);
        let newcomer = connections
            .admit(address, false)
            .expect("a silent stranger makes room");
        newcomer.set_authenticated();
        let is_there = |slot: &Slot| connections.lock().taken.contains_key(&slot.number);
        let there: Vec<_> = slots.iter().take(4).map(|slot| is_there(slot)).collect();
        assert_eq!(there, [true, true, false, true]);
        // Each new connection finds room until all slots belong to clients with credentials.
        for slot in &slots[3..] {
            slot.set_authenticated();
        }
        assert!(connections.admit(address, false).is_none());
        slots[1].is_busy(false);
        assert!(connections.admit(address, false).is_some());
    }
}
