//! A client that counts events, and one that measures their delays.

use std::time::{Duration, Instant};

use futures_util::StreamExt;
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream};

pub(crate) type Socket = WebSocketStream<MaybeTlsStream<TcpStream>>;

pub(crate) struct Client {
    pub(crate) socket: Socket,
    /// The session's id, if there are sessions.
    pub(crate) session: Option<String>,
}

#[derive(Clone, Copy)]
pub(crate) struct Delays {
    pub(crate) first: Duration,
    pub(crate) median: Duration,
    pub(crate) p99: Duration,
}

impl Client {
    async fn text(&mut self) -> tokio_tungstenite::tungstenite::Utf8Bytes {
        loop {
            match self.socket.next().await {
                Some(Ok(Message::Text(text))) => return text,
                Some(Ok(_)) => {}
                other => panic!("the connection ended: {other:?}"),
            }
        }
    }
}

/// Events per second, from the first to the last.
pub(crate) async fn full_speed(client: &mut Client, events: u64) -> f64 {
    let mut seen = 0;
    let mut start = None;
    while seen < events {
        let text = client.text().await;
        assert!(!text.contains("session.reset"), "the client was too slow");
        if text.contains("text_delta") {
            start.get_or_insert_with(Instant::now);
            seen += 1;
        }
    }
    let elapsed = start.map_or(Duration::MAX, |start| start.elapsed());
    events as f64 / elapsed.as_secs_f64()
}

/// The delay of each event.
pub(crate) async fn delays(client: &mut Client, events: u64) -> Delays {
    let mut delays = Vec::new();
    while (delays.len() as u64) < events {
        let text = client.text().await;
        if let Some((_, rest)) = text.split_once("\"at ") {
            let sent: u64 = rest[..20].parse().expect("the agent's clock");
            delays.push(Duration::from_nanos(super::now().saturating_sub(sent)));
        }
    }
    let first = delays[0];
    delays.sort_unstable();
    Delays {
        first,
        median: delays[delays.len() / 2],
        p99: delays[delays.len() * 99 / 100],
    }
}
