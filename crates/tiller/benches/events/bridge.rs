//! The least that carries an agent's lines to a WebSocket: no storage, no keeper, no session.

use std::process::Stdio;
use std::time::Duration;

use futures_util::{SinkExt, StreamExt};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::process::{Child, Command};
use tokio_tungstenite::tungstenite::Message;

use crate::agent::{EVENTS, PACE, number};
use crate::client::Client;
use crate::product::cpu_of;

pub(crate) struct Bridge {
    child: Child,
    address: String,
}

/// Whether the bridge sends together what it read together, which few bridges do.
const BATCHING: &str = "BENCH_BATCHING";

pub(crate) async fn start(events: u64, pace: Option<u64>, batching: bool) -> Bridge {
    let mut child = Command::new(std::env::current_exe().expect("this executable"))
        .arg("bridge")
        .env(BATCHING, u64::from(batching).to_string())
        .env(EVENTS, events.to_string())
        .env(PACE, pace.unwrap_or(0).to_string())
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .expect("the bridge starts");
    let mut lines = BufReader::new(child.stdout.take().expect("its output")).lines();
    let address = lines.next_line().await.expect("a line").expect("its address");
    Bridge { child, address }
}

impl Bridge {
    pub(crate) async fn connect(&mut self) -> Client {
        let (socket, _) = tokio_tungstenite::connect_async(format!("ws://{}/", self.address))
            .await
            .expect("the bridge answers");
        Client {
            socket,
            session: None,
        }
    }

    pub(crate) fn cpu(&self) -> Duration {
        cpu_of(self.child.id().expect("still running"))
    }
}

/// The bridge itself.
pub(crate) fn serve() {
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    runtime.block_on(async {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        println!("{}", listener.local_addr().expect("an address"));
        let (stream, _) = listener.accept().await.expect("a client");
        carry(stream).await;
        // Until it is killed, so that its figures can be read.
        std::future::pending::<()>().await;
    });
}

async fn carry(stream: TcpStream) {
    stream.set_nodelay(true).expect("a TCP connection");
    let mut socket = tokio_tungstenite::accept_async(stream)
        .await
        .expect("a WebSocket");
    let mut agent = Command::new(std::env::current_exe().expect("this executable"))
        .args(["--print", "--session-id=00000000-0000-4000-8000-000000000000"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .expect("the agent starts");
    let mut input = agent.stdin.take().expect("its input");
    input
        .write_all(b"{\"type\":\"user\"}\n")
        .await
        .expect("it listens");
    let mut lines = BufReader::with_capacity(64 * 1024, agent.stdout.take().expect("its output"));
    let batching = number(BATCHING) > 0;
    let mut line = String::new();
    loop {
        line.clear();
        if lines.read_line(&mut line).await.unwrap_or(0) == 0 {
            break;
        }
        let more = batching && lines.buffer().contains(&b'\n');
        let message = Message::text(line.trim_end().to_owned());
        let sent = if more {
            socket.feed(message).await
        } else {
            socket.send(message).await
        };
        if sent.is_err() || line.contains("\"type\":\"result\"") {
            break;
        }
    }
    socket.flush().await.ok();
    socket.next().await;
}
