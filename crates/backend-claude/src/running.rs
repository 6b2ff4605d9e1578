//! The running CLIs, by the names of their runs: requests beside their work go to their links directly.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use tiller_agent::link::Link;
use tokio::sync::watch;

type Links = HashMap<String, watch::Receiver<Option<Link>>>;

#[derive(Clone, Default)]
pub(crate) struct Running(Arc<Mutex<Links>>);

/// The place of one run, which is removed when this is dropped.
pub(crate) struct RunPlace {
    running: Running,
    run: String,
    link: watch::Sender<Option<Link>>,
}

impl Running {
    /// Registers a run whose CLI is about to be started or found again.
    pub(crate) fn expect(&self, run: &str) -> RunPlace {
        let (link, receiver) = watch::channel(None);
        self.links().insert(run.to_owned(), receiver);
        RunPlace {
            running: self.clone(),
            run: run.to_owned(),
            link,
        }
    }

    /// The link to the CLI of a run, once it is connected. `None`: the run is over.
    pub(crate) async fn link(&self, run: &str) -> Option<Link> {
        let mut place = self.links().get(run)?.clone();
        let link = place.wait_for(Option::is_some).await.ok()?;
        link.clone()
    }

    fn links(&self) -> std::sync::MutexGuard<'_, Links> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl RunPlace {
    /// From now on the CLI can be asked.
    pub(crate) fn connected(&self, link: &Link) {
        self.link.send_replace(Some(link.clone()));
    }
}

impl Drop for RunPlace {
    fn drop(&mut self) {
        self.running.links().remove(&self.run);
    }
}
