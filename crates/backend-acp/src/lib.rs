//! Agents with the Agent Client Protocol, as a backend.
//!
//! Translates the protocol into the product's message language, so that all front doors show such an agent like any
//! other. An agent has a keeper and outlives the server: everything that is needed to continue is in the agent's own
//! output, which the next server reads again, and in the ids of requests, which name their purpose.
//!
//! It does not know who watches a session, nor how a session is stored.

mod backend;
mod conversation;
mod known;
mod options;
mod patch;
mod relay;
mod translate;

pub use backend::{AcpAgent, AcpBackend};
