//! A WebSocket server for one CLI that was started with `--sdk-url`.

use std::io;

use bytes::Bytes;
use futures_util::{SinkExt, StreamExt};
use tiller_agent::process::{Socket, Sockets, sockets};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio_tungstenite::tungstenite::Message;

/// Listens until it is dropped.
pub(crate) struct Listener {
    pub(crate) url: String,
    task: JoinHandle<()>,
}

impl Listener {
    pub(crate) async fn start() -> (Self, Sockets) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("ws://{}/ws/cli/test", listener.local_addr().unwrap());
        let (sender, sockets) = sockets();
        let task = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let Ok(socket) = tokio_tungstenite::accept_async(stream).await else {
                    continue;
                };
                let (outgoing, incoming) = socket.split();
                let incoming = incoming.filter_map(|message| async move {
                    match message {
                        Ok(Message::Text(text)) => Some(Bytes::from(text)),
                        _ => None,
                    }
                });
                let outgoing = outgoing
                    .with(|text: String| async move {
                        Ok::<_, tokio_tungstenite::tungstenite::Error>(Message::text(text))
                    })
                    .sink_map_err(io::Error::other);
                if sender.attach(Socket::new(incoming, outgoing)).await.is_err() {
                    return;
                }
            }
        });
        (Self { url, task }, sockets)
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        self.task.abort();
    }
}
