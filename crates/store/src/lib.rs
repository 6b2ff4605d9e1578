//! Tiller's own data on SQLite: sessions, their events, decisions, credentials.
//!
//! It owns the schema and every SQL statement. It does not know agents or HTTP; the core defines what a session is.

mod sqlite;

pub use sqlite::SqliteStore;
