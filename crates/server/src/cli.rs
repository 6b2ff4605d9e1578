//! The endpoint for agents that were started with `--sdk-url`.
//!
//! The secret in the address is the agent's credential, valid for one run. The frames are passed to the backend
//! unchanged.

use std::net::SocketAddr;
use std::sync::Arc;

use axum::extract::ws::rejection::WebSocketUpgradeRejection;
use axum::extract::ws::{Message, WebSocketUpgrade};
use axum::extract::{ConnectInfo, Extension, Path, Query, State};
use axum::response::Response;
use bytes::Bytes;
use futures_util::{SinkExt, StreamExt};
use serde::Deserialize;
use tiller_core::SessionId;
use tiller_core::backend::Connection;

use crate::app::{App, MAX_MESSAGE};
use crate::error::ApiError;
use crate::listen::Slot;
use crate::openapi::ErrorBody;

#[derive(Deserialize)]
pub(crate) struct Options {
    run: Option<String>,
}

/// The endpoint for a Claude Code that was started with --sdk-url; not for other clients
#[utoipa::path(
    get, operation_id = "cli", path = "/ws/cli/{session_id}", tag = "sessions", security(()), params(
    ("session_id" = String, Path),
    ("run" = Option<String>, Query, description = "The secret that this run was started with."),
),
    extensions(("x-summary-zh-CN" = json!("以 --sdk-url 启动的 Claude Code 的连接地址，仅供其使用"))),
    responses(
    (status = 101, description = "The WebSocket is open."),
    (status = 400, body = ErrorBody, description = "Not a WebSocket."),
    (status = 401, body = ErrorBody, description = "No such run is expected."), (status = 403, body = ErrorBody),
))]
pub(crate) async fn upgrade(
    State(app): State<App>,
    ConnectInfo(peer): ConnectInfo<SocketAddr>,
    Extension(slot): Extension<Arc<Slot>>,
    Path(session): Path<String>,
    options: Result<Query<Options>, axum::extract::rejection::QueryRejection>,
    upgrade: Result<WebSocketUpgrade, WebSocketUpgradeRejection>,
) -> Result<Response, ApiError> {
    // Without the secret nobody learns whether such a session or run exists.
    let Query(options) = options.map_err(|_| ApiError::Unauthorized)?;
    let session: SessionId = session.parse().map_err(|_| ApiError::Unauthorized)?;
    let secret = options.run.ok_or(ApiError::Unauthorized)?;
    let connections = app.sessions.connections().ok_or(ApiError::Unauthorized)?;
    if !connections.expects(session, &secret, peer) {
        return Err(ApiError::Unauthorized);
    }
    slot.set_authenticated();
    let upgrade = upgrade
        .map_err(|_| ApiError::NotAWebSocket)?
        .max_message_size(MAX_MESSAGE)
        .max_frame_size(MAX_MESSAGE);
    Ok(upgrade.on_upgrade(async move |socket| {
        let (outgoing, incoming) = socket.split();
        let incoming = incoming.filter_map(|message| async move {
            match message {
                Ok(Message::Text(text)) => Some(Bytes::from(text)),
                Ok(Message::Binary(bytes)) => Some(bytes),
                _ => None,
            }
        });
        let outgoing = outgoing
            .with(|text: String| async move { Ok::<_, axum::Error>(Message::Text(text.into())) })
            .sink_map_err(std::io::Error::other);
        let connection = Connection {
            incoming: Box::pin(incoming),
            outgoing: Box::pin(outgoing),
        };
        if !connections.attach(session, &secret, connection).await {
            tracing::debug!(%session, "an agent connected after its run had ended");
        }
    }))
}
