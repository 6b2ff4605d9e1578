//! The front doors of Tiller: HTTP, WebSocket, server-sent events.
//!
//! It owns everything that a network can see: authentication, refusals and their texts, and one folder for each door.
//! Doors are thin; the core decides what sessions do. The crate does not know SQL or the message format of any agent.

mod announcements;
mod app;
mod arrival;
mod audit;
mod auth;
mod backends;
mod body;
mod chat;
mod cli;
mod decided;
mod error;
mod events;
mod follow;
mod guard;
mod history;
mod inventory;
mod keys;
mod limit;
mod listen;
mod metrics;
mod openapi;
mod options;
mod oversize;
mod pages;
mod proxy;
mod pulse;
mod ready;
mod route_scopes;
mod routes;
mod session_access;
mod sign_ins;
mod statistics;
mod system;
mod task;
mod typescript;
mod underway;

pub use app::{Access, App, serve};
pub use auth::{CODE_LIFETIME, PAGE_PROTOCOL, PROTOCOL, cookie_name};
pub use error::{ErrorCode, Language};
pub use events::{ClientEvent, ServerEvent};
pub use guard::HostPolicy;
pub use history::{HistoryHandle, wire as history_wire};
pub use pages::{Asset, Assets};
pub use proxy::TrustedProxies;
pub use system::total_memory;
pub use typescript::export_types;
