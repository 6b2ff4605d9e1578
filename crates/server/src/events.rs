//! The event API: a WebSocket on which all sessions are started, steered and watched.

mod causes;
mod commands;
mod decision_files;
mod feed;
mod images;
mod parse;
mod protocol;
mod reading;
mod replay;
mod request;
mod settings;
mod socket;
mod table;
mod translate;
mod wire;

use crate::routes::{Routes, routes};

pub(crate) use decision_files::DecisionFile;
pub(crate) use protocol::{ClientRow, Ordering, Schemas, ServerRow};
pub use table::{ClientEvent, ServerEvent};

pub(crate) fn routes() -> Routes {
    Routes::new()
        .routes(routes!(socket::upgrade))
        .routes(routes!(images::image))
        .routes(routes!(decision_files::file))
}
