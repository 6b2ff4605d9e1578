//! Lets the CLI connect to a WebSocket server in this program (versions before 2.1.126): `cargo run --example websocket`

use std::io;

use futures_util::{SinkExt, StreamExt};
use tiller_agent::process::{Socket, sockets};
use tiller_agent::{Client, Error, Options};
use tokio::net::TcpListener;
use tokio_tungstenite::tungstenite::{self, Message};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let url = format!("ws://{}/ws/cli/one", listener.local_addr()?);
    let (sender, sockets) = sockets();
    tokio::spawn(async move {
        // The CLI may connect again after a broken connection.
        while let Ok((stream, _)) = listener.accept().await {
            let Ok(socket) = tokio_tungstenite::accept_async(stream).await else {
                continue;
            };
            let (outgoing, incoming) = socket.split();
            let incoming = incoming.filter_map(|message| async move {
                match message {
                    Ok(Message::Text(text)) => Some(text.into()),
                    _ => None,
                }
            });
            let outgoing = outgoing
                .with(|text: String| async move { Ok::<_, tungstenite::Error>(Message::text(text)) })
                .sink_map_err(io::Error::other);
            if sender.attach(Socket::new(incoming, outgoing)).await.is_err() {
                return;
            }
        }
    });
    let connecting = Client::builder(Options::new()).connect_websocket(&url, sockets);
    let client = match connecting.await {
        Err(error @ Error::WebSocketUnsupported { .. }) => {
            println!("{error}.");
            return Ok(());
        }
        client => client?,
    };
    println!("{}", client.ask("Say hello.").await?.result.unwrap_or_default());
    client.close().await;
    Ok(())
}
