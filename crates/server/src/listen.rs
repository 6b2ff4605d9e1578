//! From a listening socket to requests: how many connections, how large a head, how long it may take, and how long an answer
//! waits for someone to read it.

mod meter;
mod seated;

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
pub(crate) async fn listen(
    listeners: Vec<TcpListener>,
    router: Router,
    access: Arc<Access>,
) -> io::Result<()> {
    let guests = Arc::<Guests>::default();
    let all = listeners.into_iter().map(|listener| {
        let (access, guests) = (Arc::clone(&access), Arc::clone(&guests));
        welcome(listener, router.clone(), access, guests, STUCK_WRITE)
    });
    try_join_all(all).await.map(drop)
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
        let seated = Seated::new(stream, Arc::clone(&seat), patience);
        tokio::spawn(converse(
            seated,
            seat,
            address,
            router.clone(),
            Arc::clone(&access),
        ));
    }
}

async fn converse(stream: Seated, seat: Arc<Seat>, address: SocketAddr, router: Router, access: Arc<Access>) {
    let seat_of_requests = Arc::clone(&seat);
    let service = service_fn(move |request: hyper::Request<Incoming>| {
        let mut router = router.clone();
        let mut request = request.map(Body::new);
        let client = access.proxies.client(address, request.headers());
        let https = access.proxies.is_https(address.ip(), request.headers());
        request.extensions_mut().insert(ConnectInfo(client));
        request.extensions_mut().insert(https);
        let seat = Arc::clone(&seat_of_requests);
        request.extensions_mut().insert(Arc::clone(&seat));
        let headers = request.headers_mut();
        headers
            .entry(ACCEPT_LANGUAGE)
            .or_insert_with(|| access.language.tag());
        async move {
            // Counted for strangers only: those who belong keep their seats anyway.
            let was_stranger = !seat.has_shown_credential();
            if was_stranger {
                seat.is_busy(true);
            }
            let Ok(response) = router.call(request).await;
            seat.meter.finished();
            if was_stranger && !seat.has_shown_credential() {
                seat.is_busy(false);
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
    let evicted = Arc::clone(&seat.evicted);
    // The stream holds the seat for as long as it lives, also as a WebSocket.
    drop(seat);
    tokio::select! {
        ended = connection => {
            if let Err(error) = ended {
                tracing::debug!(%error, "a connection ended badly");
            }
        }
        () = evicted.notified() => tracing::debug!(%address, "a silent connection made room for another"),
    }
}

/// Who is connected. A std mutex: held to count, never across an await.
#[derive(Default)]
struct Guests {
    seats: Mutex<Seats>,
}

#[derive(Default)]
struct Seats {
    /// Every connection's address, by its number, the oldest first.
    taken: BTreeMap<u64, Taken>,
    by_address: HashMap<IpAddr, usize>,
    next: u64,
}

struct Taken {
    address: IpAddr,
    /// How to end the connection, while it has shown no credential and asks for nothing.
    idle_stranger: Option<Arc<Notify>>,
}

/// One connection's place, given back when it ends.
pub(crate) struct Seat {
    guests: Arc<Guests>,
    number: u64,
    evicted: Arc<Notify>,
    has_shown_credential: AtomicBool,
    /// What the other side has begun to send.
    pub(crate) meter: Meter,
}

impl Guests {
    /// Where all seats are taken, the connection that has waited longest without a credential makes room: silent strangers
    /// keep out nobody. Behind a proxy are many clients, so that only the number of all connections limits it.
    fn admit(self: &Arc<Self>, address: IpAddr, is_proxy: bool) -> Option<Arc<Seat>> {
        let address = group(address);
        let mut seats = self.lock();
        let of_this = seats.by_address.get(&address).copied().unwrap_or(0);
        if !is_proxy && of_this >= MAX_CONNECTIONS_OF_ONE_ADDRESS {
            seats.evict(|taken| taken.address == address)?;
        }
        if seats.taken.len() >= MAX_CONNECTIONS {
            seats.evict(|_| true)?;
        }
        let evicted = Arc::new(Notify::new());
        let number = seats.next;
        seats.next += 1;
        *seats.by_address.entry(address).or_default() += 1;
        let idle_stranger = Some(Arc::clone(&evicted));
        seats.taken.insert(
            number,
            Taken {
                address,
                idle_stranger,
            },
        );
        Some(Arc::new(Seat {
            guests: Arc::clone(self),
            number,
            evicted,
            has_shown_credential: AtomicBool::new(false),
            meter: Meter::default(),
        }))
    }

    fn lock(&self) -> MutexGuard<'_, Seats> {
        // Whole between any two statements.
        self.seats.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Seats {
    /// Ends the oldest connection of a stranger that asks for nothing. `None` if there is none.
    fn evict(&mut self, may_go: impl Fn(&Taken) -> bool) -> Option<()> {
        let is_idle = |taken: &&Taken| taken.idle_stranger.is_some() && may_go(taken);
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
        taken.idle_stranger
    }
}

impl fmt::Debug for Seat {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_tuple("Seat").field(&self.number).finish()
    }
}

impl Seat {
    /// Somebody has shown a credential on this connection, which keeps its seat from now on.
    pub(crate) fn belongs(&self) {
        if !self.has_shown_credential.swap(true, Ordering::Relaxed) {
            self.set_idle(None);
        }
    }

    fn has_shown_credential(&self) -> bool {
        self.has_shown_credential.load(Ordering::Relaxed)
    }

    /// A request is being answered, or has been.
    fn is_busy(&self, busy: bool) {
        self.set_idle((!busy).then(|| Arc::clone(&self.evicted)));
    }

    fn set_idle(&self, idle_stranger: Option<Arc<Notify>>) {
        if let Some(taken) = self.guests.lock().taken.get_mut(&self.number) {
            taken.idle_stranger = idle_stranger;
        }
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        // Nothing to do if it was evicted.
        self.guests.lock().free(self.number);
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
            hosts: HostPolicy::new(&[address], false, &[]),
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
        let seats = || guests.lock().taken.len();

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

    /// Seats of clients that have shown a credential.
    fn taken(guests: &Arc<Guests>, addresses: impl Iterator<Item = IpAddr>) -> Vec<Arc<Seat>> {
        let seats = addresses.map(|address| guests.admit(address, false).unwrap());
        seats.inspect(|seat| seat.belongs()).collect()
    }

    #[test]
    fn an_address_has_so_many_seats_and_gives_them_back() {
        let guests = Arc::new(Guests::default());
        let (one, other) = ("127.0.0.1".parse().unwrap(), "127.0.0.2".parse().unwrap());
        let mut seats = taken(&guests, std::iter::repeat_n(one, MAX_CONNECTIONS_OF_ONE_ADDRESS));
        assert!(guests.admit(one, false).is_none());
        assert!(guests.admit(other, false).is_some());
        assert!(guests.admit(one, true).is_some(), "a proxy may have more");
        seats.pop();
        assert!(guests.admit(one, false).is_some());
        drop(seats);
        assert!(guests.lock().taken.is_empty() && guests.lock().by_address.is_empty());
    }

    #[test]
    fn the_house_has_so_many_seats() {
        let guests = Arc::new(Guests::default());
        let address = |number: usize| IpAddr::from([10, 0, 0, u8::try_from(number / 200).unwrap()]);
        let seats = taken(&guests, (0..MAX_CONNECTIONS).map(address));
        assert!(guests.admit("10.1.0.0".parse().unwrap(), false).is_none());
        drop(seats);
        assert!(guests.admit("10.1.0.0".parse().unwrap(), false).is_some());
    }

    #[test]
    fn silent_strangers_make_room_and_those_who_ask_or_belong_do_not() {
        let guests = Arc::new(Guests::default());
        let address: IpAddr = "127.0.0.1".parse().unwrap();
        let seats: Vec<_> = (0..MAX_CONNECTIONS_OF_ONE_ADDRESS)
            .map(|_| guests.admit(address, false).unwrap())
            .collect();
        seats[0].belongs();
        seats[1].is_busy(true);
        let newcomer = guests
            .admit(address, false)
            .expect("a silent stranger makes room");
        newcomer.belongs();
        let is_there = |seat: &Seat| guests.lock().taken.contains_key(&seat.number);
        let there: Vec<_> = seats.iter().take(4).map(|seat| is_there(seat)).collect();
        assert_eq!(there, [true, true, false, true]);
        // However many come, each finds room until all seats belong to someone.
        for seat in &seats[3..] {
            seat.belongs();
        }
        assert!(guests.admit(address, false).is_none());
        seats[1].is_busy(false);
        assert!(guests.admit(address, false).is_some());
    }
}
