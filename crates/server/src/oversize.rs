//! Refuses WebSocket messages that are too long or not text.

use std::time::Duration;

use axum::extract::ws::{CloseFrame, Message, WebSocket, WebSocketUpgrade, close_code};
use tokio_tungstenite::tungstenite;

use crate::app::MAX_MESSAGE;
use crate::auth::{PROTOCOL, Visitor};

/// A message that is a little too long is read to its end, so that its sender gets an error and can continue.
const READ_LIMIT: usize = MAX_MESSAGE + (2 << 20);

/// What the sender can do. Short enough for a close frame.
pub(crate) const TOO_LONG: &str =
    "A message may have at most 32 MiB. Send less, or name a file for the agent to read.";

/// How long the connection stays open after the close frame. Closing it at once would discard what the client has not
/// read yet, because it is still writing.
const LINGER: Duration = Duration::from_secs(5);

pub(crate) fn limited(upgrade: WebSocketUpgrade) -> WebSocketUpgrade {
    upgrade
        .protocols([PROTOCOL])
        .max_message_size(READ_LIMIT)
        .max_frame_size(READ_LIMIT)
}

/// The next message. Cancel-safe.
pub(crate) async fn receive(
    socket: &mut WebSocket,
    visitor: &Visitor,
) -> Option<Result<Message, axum::Error>> {
    let message = socket.recv().await;
    if let Some(slot) = &visitor.slot {
        slot.meter.finished();
    }
    message
}

pub(crate) fn is_too_long(text: &str) -> bool {
    text.len() > MAX_MESSAGE
}

/// Closes the connection with the reason, if reading failed because of what the client sent.
pub(crate) async fn refuse(socket: &mut WebSocket, error: axum::Error) {
    let cause = error.into_inner();
    let cause = cause.downcast_ref::<tungstenite::Error>();
    let (code, reason) = match cause {
        Some(tungstenite::Error::Capacity(_)) => (close_code::SIZE, TOO_LONG),
        Some(tungstenite::Error::Utf8(_)) => (close_code::INVALID, "A text frame must be UTF-8."),
        _ => return,
    };
    let reason = CloseFrame {
        code,
        reason: reason.into(),
    };
    let told = tokio::time::timeout(LINGER, socket.send(Message::Close(Some(reason)))).await;
    if let Ok(Ok(())) = told {
        tokio::time::sleep(LINGER).await;
    }
}
