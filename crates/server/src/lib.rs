//! The front doors of Tiller: HTTP, WebSocket, server-sent events.
//!
//! It owns everything that a network can see: who gets in, what is refused and how that is said, and one folder for
//! each door. Doors are thin; what a session is and does, the core says. It knows no SQL and no agent's format.

mod app;
mod arrival;
mod auth;
mod backends;
mod body;
mod chat;
mod cli;
mod error;
mod events;
mod follow;
mod guard;
mod history;
mod house;
mod inventory;
mod limit;
mod listen;
mod openapi;
mod options;
mod oversize;
mod pages;
mod proxy;
mod pulse;
mod revocation;
mod route_scopes;
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
