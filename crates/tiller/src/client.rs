//! Commands of the program as clients of the event API: of the server that uses the data folder, or of a temporary one.

use std::time::Duration;

use anyhow::{Context, bail};
use futures_util::{SinkExt, StreamExt};
use serde_json::{Value, json};
use tiller_core::Sessions;
use tokio::net::TcpStream;
use tokio::task::JoinHandle;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;

use crate::cli::ServeArgs;
use crate::data_dir::{DataDir, ServerLock};
use crate::link::OwnSignIn;
use crate::serve::Service;

/// How often to retry if another command's server is just ending.
const TRIES: u32 = 20;

/// Another command has the data folder, and is about to announce its server or to end.
const PAUSE: Duration = Duration::from_millis(100);

pub(crate) struct Client {
    socket: WebSocketStream<TcpStream>,
    sign_in: OwnSignIn,
    data_dir: DataDir,
    own: Option<OwnServer>,
}

/// A server that lives as long as its command.
struct OwnServer {
    sessions: Sessions,
    serving: JoinHandle<std::io::Result<()>>,
    _lock: ServerLock,
}

impl Client {
    /// Connects to the running server, or starts one.
    pub(crate) async fn connect(args: &ServeArgs) -> anyhow::Result<Self> {
        let data_dir = args.data_dir()?;
        let mut last = None;
        for _ in 0..TRIES {
            match Self::attempt(args, &data_dir).await {
                Ok(Some(client)) => return Ok(client),
                Ok(None) => {}
                Err(error) => last = Some(error),
            }
            tokio::time::sleep(PAUSE).await;
        }
        let error = last.unwrap_or_else(|| anyhow::anyhow!("another Tiller is using the data folder"));
        Err(error.context("can't reach Tiller"))
    }

    /// `None`: try again.
    async fn attempt(args: &ServeArgs, data_dir: &DataDir) -> anyhow::Result<Option<Self>> {
        if let Some(server) = data_dir.running() {
            let (socket, sign_in) = open(data_dir, &server.url).await?;
            return Ok(Some(Self {
                socket,
                sign_in,
                data_dir: data_dir.clone(),
                own: None,
            }));
        }
        let Some(lock) = data_dir.try_lock()? else {
            return Ok(None);
        };
        let loopback = std::net::Ipv4Addr::LOCALHOST.into();
        let service = Service::open(args, data_dir, lock, loopback, Some(0)).await?;
        let own = OwnServer {
            sessions: service.sessions,
            serving: tokio::spawn(tiller_server::serve(service.listeners, service.app)),
            _lock: service.lock,
        };
        let (socket, sign_in) = open(data_dir, &service.address.url).await?;
        Ok(Some(Self {
            socket,
            sign_in,
            data_dir: data_dir.clone(),
            own: Some(own),
        }))
    }

    pub(crate) async fn send(&mut self, kind: &str, payload: Value) -> anyhow::Result<()> {
        let event = match payload {
            Value::Null => json!({ "type": kind }),
            payload => json!({ "type": kind, "payload": payload }),
        };
        let sent = self.socket.send(Message::text(event.to_string())).await;
        sent.context("the server closed the connection")
    }

    /// The next event. Cancel-safe.
    pub(crate) async fn next(&mut self) -> anyhow::Result<Value> {
        loop {
            match self.socket.next().await {
                Some(Ok(Message::Text(text))) => {
                    return tiller_message::decode_envelope(&text)
                        .context("the server sent a frame that is not JSON");
                }
                Some(Ok(Message::Close(_)) | Err(_)) | None => bail!("the server closed the connection"),
                Some(Ok(_)) => {}
            }
        }
    }

    /// Reads until an event of this type and returns its payload. A refusal of the server is an error.
    pub(crate) async fn until(&mut self, kind: &str) -> anyhow::Result<Value> {
        loop {
            let mut event = self.next().await?;
            match event["type"].as_str() {
                Some(found) if found == kind => return Ok(event["payload"].take()),
                Some("runner.error") => {
                    bail!("{}", event["payload"]["message"].as_str().unwrap_or("refused"))
                }
                _ => {}
            }
        }
    }

    /// The id of the session that has this id, or whose id begins with it.
    pub(crate) async fn session_like(&mut self, wanted: &str) -> anyhow::Result<Value> {
        self.send("session.list", Value::Null).await?;
        let mut list = self.until("session.list").await?;
        let is_it = |session: &Value| {
            session["id"]
                .as_str()
                .is_some_and(|id| !wanted.is_empty() && id.starts_with(&wanted.to_ascii_lowercase()))
        };
        let Value::Array(sessions) = list["sessions"].take() else {
            bail!("the server sent a list without sessions");
        };
        let mut found = sessions.into_iter().filter(is_it);
        match (found.next(), found.next()) {
            (Some(session), None) => Ok(session),
            (None, _) => bail!("there is no session '{wanted}'; `tiller sessions` lists all"),
            (Some(_), Some(_)) => bail!("several sessions begin with '{wanted}'; give more of the id"),
        }
    }

    /// Disconnects. An own server ends once no session of other clients runs in it.
    pub(crate) async fn close(mut self) {
        if self.socket.close(None).await.is_err() {
            tracing::debug!("the server was gone already");
        }
        match self.data_dir.open_store() {
            Ok(store) => self.sign_in.end(&store).await,
            Err(error) => tracing::debug!(%error, "the command's sign-in ends by itself, in a week"),
        }
        let Some(own) = self.own else { return };
        // No longer announced, so that new commands wait for the next server.
        let mut feed = own.sessions.watch();
        while own.sessions.any_running() {
            if feed.next().await.is_none() {
                break;
            }
        }
        own.sessions.close().await;
        own.serving.abort();
    }
}

async fn open(data_dir: &DataDir, url: &str) -> anyhow::Result<(WebSocketStream<TcpStream>, OwnSignIn)> {
    let authority = url
        .strip_prefix("http://")
        .context("the server's address is invalid")?;
    let sign_in = OwnSignIn::create(&data_dir.open_store()?).await?;
    let mut request = format!("ws://{authority}/ws/events?only=subscribed").into_client_request()?;
    let headers = request.headers_mut();
    headers.insert("cookie", sign_in.cookie().parse()?);
    headers.insert("sec-websocket-protocol", sign_in.protocols().parse()?);
    headers.insert("origin", url.parse()?);
    let stream = TcpStream::connect(authority)
        .await
        .with_context(|| format!("no server answers at {url}"))?;
    stream.set_nodelay(true)?;
    let (socket, _) = tokio_tungstenite::client_async(request, stream)
        .await
        .with_context(|| format!("the server at {url} refused the connection"))?;
    Ok((socket, sign_in))
}
