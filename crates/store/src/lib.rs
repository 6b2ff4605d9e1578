//! The event log and sessions of Tiller on SQLite.
