//! WebSocket messages that this server does not take: longer than it reads, or no text.

use std::time::Duration;

use axum::extract::ws::{CloseFrame, Message, WebSocket, WebSocketUpgrade, close_code};
use tokio_tungstenite::tungstenite;

use crate::app::MAX_MESSAGE;
use crate::auth::{PROTOCOL, Visitor};

/// A message that is a little longer is read to its end, so that its sender can be told and go on.
const READ_LIMIT: usize = MAX_MESSAGE + (2 << 20);

/// What the sender can do about it. Short enough for a close frame.
pub(crate) const TOO_LONG: &str =
    "A message may have at most 32 MiB. Send less, or name a file for the agent to read.";

/// How long the connection is held after the last word. Closing it at once would throw away what the other side has not
/// read yet, as it is still writing.
const LINGER: Duration = Duration::from_secs(5);

pub(crate) fn limited(upgrade: WebSocketUpgrade) -> WebSocketUpgrade {
    upgrade
        .protocols([PROTOCOL])
        .max_message_size(READ_LIMIT)
        .max_frame_size(READ_LIMIT)
}

/// The next message. May be dropped and called again.
pub(crate) async fn receive(
    socket: &mut WebSocket,
    visitor: &Visitor,
) -> Option<Result<Message, axum::Error>> {
    let message = socket.recv().await;
    if let Some(seat) = &visitor.seat {
        seat.meter.finished();
    }
    message
}

pub(crate) fn is_too_long(text: &str) -> bool {
    text.len() > MAX_MESSAGE
}

/// Says why reading has failed, as the end of the connection, if it was for what the other side has sent.
pub(crate) async fn refuse(socket: &mut WebSocket, error: axum::Error) {
    let cause = error.into_inner();
    let cause = cause.downcast_ref::<tungstenite::Error>();
    let (code, reason) = match cause {
        Some(tungstenite::Error::Capacity(_)) => (close_code::SIZE, TOO_LONG),
        Some(tungstenite::Error::Utf8(_)) => {
            (close_code::INVALID, "A text frame is UTF-8. This one was not.")
        }
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
