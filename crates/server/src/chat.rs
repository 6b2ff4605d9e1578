//! The chat API: a WebSocket that is one conversation.
//!
//! `wire` is what goes over it, `translate` turns a session's events into frames and frames into commands, `pace`
//! counts what a client sends, `socket` is the loop. A conversation is called by a name of the client's; it begins with
//! the first message.

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
