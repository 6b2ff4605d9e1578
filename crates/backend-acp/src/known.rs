//! What the agents of one backend told last. An agent says it only when a session is opened.

use std::sync::{Arc, Mutex, PoisonError};

#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(crate) struct Known {
    pub(crate) version: Option<String>,
    /// The modes and models that can be chosen, by the agent's names.
    pub(crate) modes: Vec<String>,
    pub(crate) models: Vec<String>,
    /// Whether the last session could be opened, or was refused for want of a sign-in.
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
