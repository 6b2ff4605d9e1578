//! A client of the event API that knows only its contract.

use std::path::Path;

use futures_util::{SinkExt, StreamExt};
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream};

use crate::server::{PATIENCE, Server, SignIn};

pub(crate) struct EventClient {
    socket: WebSocketStream<MaybeTlsStream<TcpStream>>,
    /// Everything that was received, in order.
    pub(crate) heard: Vec<Value>,
}

impl EventClient {
    pub(crate) async fn connect(server: &Server, sign_in: &SignIn) -> Self {
        Self::connect_to(server, "/ws/events", sign_in).await
    }

    /// Connects as our page does.
    pub(crate) async fn connect_to(server: &Server, path: &str, sign_in: &SignIn) -> Self {
        let origin = format!("http://{}", server.address);
        let protocols = sign_in.protocols();
        let headers = [
            ("cookie", sign_in.cookie.as_str()),
            ("sec-websocket-protocol", protocols.as_str()),
            ("origin", origin.as_str()),
        ];
        Self::connect_with(server, path, &headers).await.unwrap()
    }

    /// The status if the server refuses.
    pub(crate) async fn connect_with(
        server: &Server,
        path: &str,
        headers: &[(&'static str, &str)],
    ) -> Result<Self, u16> {
        let mut request = format!("ws://{}{path}", server.address)
            .into_client_request()
            .unwrap();
        for (name, value) in headers {
            request.headers_mut().insert(*name, value.parse().unwrap());
        }
        match tokio_tungstenite::connect_async(request).await {
            Ok((socket, _)) => Ok(Self {
                socket,
                heard: Vec::new(),
            }),
            Err(tokio_tungstenite::tungstenite::Error::Http(response)) => Err(response.status().as_u16()),
            Err(error) => panic!("{error}"),
        }
    }

    pub(crate) async fn send(&mut self, kind: &str, payload: Value) {
        let event = if payload.is_null() {
            json!({ "type": kind })
        } else {
            json!({ "type": kind, "payload": payload })
        };
        self.send_text(&event.to_string()).await;
    }

    pub(crate) async fn send_text(&mut self, text: &str) {
        self.socket.send(Message::text(text)).await.unwrap();
    }

    /// Sends an invalid text frame.
    pub(crate) async fn send_no_text(&mut self) {
        let [text, two_bytes_masked, no_mask] = [0x81, 0x82, 0];
        let frame = [
            text,
            two_bytes_masked,
            no_mask,
            no_mask,
            no_mask,
            no_mask,
            0xFF,
            0xFE,
        ];
        self.socket.get_mut().write_all(&frame).await.unwrap();
    }

    /// Sends only the head of a message of this length.
    pub(crate) async fn announce(&mut self, length: u64) {
        let [text, eight_bytes_of_length, no_mask] = [0x81, 0xFF, 0];
        let mut header = vec![text, eight_bytes_of_length];
        header.extend(length.to_be_bytes());
        header.extend([no_mask; 4]);
        self.socket.get_mut().write_all(&header).await.unwrap();
    }

    /// Sends all of a message but its end. The server may close the connection meanwhile.
    pub(crate) async fn send_unfinished(&mut self, length: u64) {
        self.announce(length + 1).await;
        let piece = vec![b' '; 1 << 20];
        for _ in 0..length >> 20 {
            if self.socket.get_mut().write_all(&piece).await.is_err() {
                return;
            }
        }
    }

    /// The reason with which the server closes the connection.
    pub(crate) async fn until_closed(&mut self) -> (u16, String) {
        loop {
            let frame = tokio::time::timeout(PATIENCE, self.socket.next()).await;
            match frame.expect("an end").expect("a last word") {
                Ok(Message::Close(Some(close))) => return (close.code.into(), close.reason.to_string()),
                Ok(_) => {}
                Err(error) => panic!("cut off: {error}"),
            }
        }
    }

    /// Closes the connection and waits for the acknowledgement: hanging up earlier could lose the last frames.
    pub(crate) async fn leave(mut self) {
        self.socket.close(None).await.unwrap();
        while let Ok(Some(Ok(_))) = tokio::time::timeout(PATIENCE, self.socket.next()).await {}
    }

    /// Reads until the server pings.
    pub(crate) async fn until_ping(&mut self) {
        loop {
            let frame = tokio::time::timeout(PATIENCE, self.socket.next()).await;
            match frame.expect("a ping").expect("the connection is open").unwrap() {
                Message::Ping(_) => return,
                Message::Text(text) => self.heard.push(serde_json::from_str(&text).unwrap()),
                _ => {}
            }
        }
    }

    /// The next event; `None` when the server closes the connection.
    pub(crate) async fn next(&mut self) -> Option<Value> {
        // A deadline for all of it: pings alone don't extend it.
        let deadline = tokio::time::Instant::now() + PATIENCE;
        loop {
            let frame = tokio::time::timeout_at(deadline, self.socket.next()).await;
            let frame = frame
                .unwrap_or_else(|_| panic!("nothing more came; heard so far: {}", self.story().join("\n")));
            match frame {
                Some(Ok(Message::Text(text))) => {
                    let event: Value = serde_json::from_str(&text).unwrap();
                    self.heard.push(event.clone());
                    return Some(event);
                }
                Some(Ok(Message::Close(_)) | Err(_)) | None => return None,
                Some(Ok(_)) => {}
            }
        }
    }

    /// Reads until an event matches.
    pub(crate) async fn until(&mut self, what: &str, fits: impl Fn(&Value) -> bool) -> Value {
        loop {
            let event = self
                .next()
                .await
                .unwrap_or_else(|| panic!("the connection ended before {what}"));
            if fits(&event) {
                return event;
            }
        }
    }

    /// Reads until each of these was received after the first `before` events, in any order.
    pub(crate) async fn until_all(&mut self, before: usize, wanted: &[&dyn Fn(&Value) -> bool]) {
        while !wanted.iter().all(|fits| self.heard[before..].iter().any(fits)) {
            self.next().await.expect("the connection is open");
        }
    }

    /// Reads until an event of this type. Returns its payload.
    pub(crate) async fn until_type(&mut self, kind: &str) -> Value {
        self.until(kind, |event| event["type"] == kind).await["payload"].clone()
    }

    pub(crate) async fn until_status(&mut self, status: &str) -> Value {
        self.until(status, |event| is_status(event, status)).await["payload"].clone()
    }

    /// Reads until the streamed text contains this.
    pub(crate) async fn until_streamed(&mut self, text: &str) {
        while !self.streamed().contains(text) {
            self.next()
                .await
                .unwrap_or_else(|| panic!("the connection ended before {text:?}"));
        }
    }

    /// Starts a session and waits until it runs. Returns its id.
    pub(crate) async fn start(&mut self, cwd: &Path, prompt: &str) -> String {
        self.send(
            "session.start",
            json!({ "title": "", "prompt": prompt, "cwd": cwd }),
        )
        .await;
        self.until_status("running").await["sessionId"]
            .as_str()
            .unwrap()
            .to_owned()
    }

    /// Sends a prompt to a session.
    pub(crate) async fn prompt(&mut self, session: &str, prompt: &str) {
        let payload = json!({ "sessionId": session, "prompt": prompt });
        self.send("session.continue", payload).await;
    }

    /// The entries of the list of sessions.
    pub(crate) async fn sessions(&mut self) -> Vec<Value> {
        self.send("session.list", Value::Null).await;
        let list = self.until_type("session.list").await;
        list["sessions"].as_array().unwrap().clone()
    }

    /// Answers a `permission.request`.
    pub(crate) async fn answer(&mut self, request: &Value, result: Value) {
        let payload =
            json!({ "sessionId": request["sessionId"], "toolUseId": request["toolUseId"], "result": result });
        self.send("permission.response", payload).await;
    }

    /// All streamed text.
    pub(crate) fn streamed(&self) -> String {
        let deltas = self
            .heard
            .iter()
            .map(|event| &event["payload"]["message"]["event"]["delta"]["text"]);
        deltas.filter_map(Value::as_str).collect()
    }

    /// The received events, one line each, without what differs between runs and what a client may ignore.
    pub(crate) fn story(&self) -> Vec<String> {
        let told = self
            .heard
            .iter()
            .filter(|event| event["type"] != "session.updated");
        told.map(in_short).collect()
    }

    /// The received events that are part of a session's log.
    pub(crate) fn logged(&self) -> Vec<Value> {
        let logged = self.heard.iter().filter(|event| event["payload"]["seq"].is_u64());
        logged.cloned().collect()
    }

    /// As [`Self::logged`], after the event with this number.
    pub(crate) fn logged_since(&self, seq: u64) -> Vec<Value> {
        let newer = |event: &Value| event["payload"]["seq"].as_u64().is_some_and(|found| found > seq);
        self.logged().into_iter().filter(newer).collect()
    }

    /// The `seq`s of all received events, in order.
    pub(crate) fn seqs(&self) -> Vec<u64> {
        self.heard
            .iter()
            .filter_map(|event| event["payload"]["seq"].as_u64())
            .collect()
    }
}

pub(crate) fn is_status(event: &Value, status: &str) -> bool {
    event["type"] == "session.status" && event["payload"]["status"] == status
}

fn in_short(event: &Value) -> String {
    let payload = &event["payload"];
    let kind = event["type"].as_str().unwrap_or("?");
    let detail = match kind {
        "session.status" => payload["status"].as_str().unwrap_or("?").to_owned(),
        "stream.user_prompt" => payload["prompt"].as_str().unwrap_or("?").to_owned(),
        "stream.message" => {
            let message = &payload["message"];
            [&message["type"], &message["subtype"]]
                .iter()
                .filter_map(|part| part.as_str())
                .collect::<Vec<_>>()
                .join(":")
        }
        "permission.request" => payload["toolName"].as_str().unwrap_or("?").to_owned(),
        "permission.resolved" => payload["behavior"].as_str().unwrap_or("?").to_owned(),
        "runner.error" => payload["message"].as_str().unwrap_or("?").to_owned(),
        _ => String::new(),
    };
    format!("{kind} {detail}").trim_end().to_owned()
}
