//! The event API: a WebSocket on which every session is started, steered and watched.

mod causes;
mod commands;
mod feed;
mod images;
mod parse;
mod protocol;
mod reading;
mod replay;
mod request;
mod socket;
mod table;
mod translate;
pub mod wire;

pub(crate) use images::image;
pub(crate) use protocol::{ClientRow, Ordering, Schemas, ServerRow};
pub(crate) use socket::upgrade;
pub(crate) use table::{ClientEvent, ServerEvent};
