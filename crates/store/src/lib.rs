//! Tiller's own data on SQLite: sessions, their events, decisions, credentials.
//!
//! It owns the schema and every SQL statement. It knows nothing of agents or HTTP; what a session is, the core says.

mod sqlite;

pub use sqlite::SqliteStore;
