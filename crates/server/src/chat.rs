//! The chat API: a WebSocket with one conversation.
//!
//! `wire` has the messages, `translate` turns events into frames and messages into commands, `pace` limits the rate of
//! messages, `socket` is the loop. The client names the conversation, which begins with the first message.

mod pace;
mod parse;
mod socket;
mod translate;
mod wire;

use crate::routes::{Routes, routes};

pub(crate) fn routes() -> Routes {
    Routes::new().routes(routes!(socket::upgrade))
}
