//! Gates: positions in a reply where the model waits until the test opens them.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::watch;

/// A named position in a script that the test opens. Once open, it stays open.
#[derive(Clone, Debug)]
pub struct Gate {
    state: Arc<watch::Sender<State>>,
}

#[derive(Clone, Copy, Debug, Default)]
struct State {
    open: bool,
    arrivals: usize,
}

impl Gate {
    fn new() -> Self {
        Self {
            state: Arc::new(watch::Sender::new(State::default())),
        }
    }

    /// Lets everything that waits here, now or later, continue.
    pub fn open(&self) {
        self.state.send_modify(|state| state.open = true);
    }

    /// Returns when a reply has reached this gate: everything before it has been sent.
    pub async fn reached(&self) {
        self.wait_for(|state| state.arrivals > 0).await;
    }

    /// Waits at the gate.
    pub(crate) async fn pass(&self) {
        self.state.send_modify(|state| state.arrivals += 1);
        self.wait_for(|state| state.open).await;
    }

    async fn wait_for(&self, ready: impl Fn(&State) -> bool) {
        // `self` holds the sender, so the channel can't close while this waits.
        if self.state.subscribe().wait_for(ready).await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}

/// All gates of a server, created when they are first named.
#[derive(Debug, Default)]
pub(crate) struct Gates {
    by_name: Mutex<HashMap<String, Gate>>,
}

impl Gates {
    pub(crate) fn get(&self, name: &str) -> Gate {
        let mut by_name = self.by_name.lock().unwrap_or_else(PoisonError::into_inner);
        by_name.entry(name.to_owned()).or_insert_with(Gate::new).clone()
    }
}
