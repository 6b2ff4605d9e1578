//! The chat API: a WebSocket with one conversation.
//!
//! `wire` has the messages, `translate` turns events into frames and messages into commands, `pace` limits the rate of
//! messages, `socket` is the loop. The client names the conversation, which begins with the first message.

mod pace;
mod parse;
mod socket;
mod translate;
mod wire;

use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::app::App;

pub(crate) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(socket::upgrade))
}
