//! What the agents of one backend last reported. An agent reports it only when a session is opened.

use std::sync::{Arc, Mutex, PoisonError};

#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(crate) struct Known {
    pub(crate) version: Option<String>,
    /// The available modes and models, by the agent's names.
    pub(crate) modes: Vec<String>,
    pub(crate) models: Vec<String>,
    /// Whether the last session could be opened, or was refused because the user is not signed in.
    pub(crate) signed_in: Option<bool>,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct LastKnown(Arc<Mutex<Known>>);

impl LastKnown {
    pub(crate) fn get(&self) -> Known {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn put(&self, known: Known) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = known;
    }
}
