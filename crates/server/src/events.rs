//! The event API: a WebSocket on which every session is started, steered and watched.

mod commands;
mod images;
mod known;
mod parse;
mod reading;
mod socket;
mod translate;
pub mod wire;

pub(crate) use images::image;
pub(crate) use socket::upgrade;
