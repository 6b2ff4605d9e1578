//! The domain of Tiller: sessions, decisions, events.
