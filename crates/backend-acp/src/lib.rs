//! Agents that speak the Agent Client Protocol, as a backend.
//!
//! Translates the protocol into the product's message language, so that every front door shows such an agent as it shows
//! any other. An agent has a keeper and outlives the server: everything that is needed to go on is in the agent's own
//! output, which the next server reads again, and in the ids of requests, which say what they are for.
//!
//! It does not know who watches a session, nor how a session is kept.

mod backend;
mod conversation;
mod known;
mod options;
mod patch;
mod relay;
mod translate;

pub use backend::{AcpAgent, AcpBackend};
