//! The transcripts, opened by the first request, and their index, kept up to date in the background.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tiller_history::{History, HistoryError, Page, SessionId};
use tokio::sync::broadcast;

use super::live::{BEHIND, Bundle};
use super::vault::VaultSwitch;
use crate::error::ApiError;

/// The shortest time between two rounds of archiving, however often the vault is turned on and off.
const SOON: Duration = Duration::from_millis(200);

/// The history of the machine's owner. Cheap to clone; indexing ends when the last clone is dropped.
#[derive(Clone)]
pub struct HistoryHandle {
    transcripts: Arc<Transcripts>,
    indexer: Arc<Indexer>,
}

/// What someone needs to know who resumes a conversation.
pub(crate) struct Conversation {
    pub(crate) folder: String,
    pub(crate) title: String,
}

struct Transcripts {
    claude_home: PathBuf,
    index_dir: PathBuf,
    opened: Mutex<Option<Arc<History>>>,
    vault: VaultSwitch,
    /// Publishes changes to subscribers.
    changes: broadcast::Sender<Bundle>,
}

impl HistoryHandle {
    pub(crate) fn claude_home(&self) -> &Path {
        &self.transcripts.claude_home
    }

    /// Reads the transcripts under `claude_home`, keeps an index of them in `index_dir`, and archives them in `vault_dir`
    /// if the vault is turned on. Returns at once: a background thread does the work.
    pub fn start(claude_home: PathBuf, index_dir: PathBuf, vault_dir: PathBuf) -> std::io::Result<Self> {
        let transcripts = Arc::new(Transcripts {
            claude_home,
            index_dir,
            opened: Mutex::new(None),
            vault: VaultSwitch::new(vault_dir),
            changes: broadcast::Sender::new(BEHIND),
        });
        let indexer = Indexer::start(Arc::clone(&transcripts))?;
        Ok(Self {
            transcripts,
            indexer: Arc::new(indexer),
        })
    }

    /// A conversation's folder and title. `None`: there is no such transcript.
    pub(crate) async fn conversation(&self, id: String) -> Result<Option<Conversation>, ApiError> {
        self.query(move |history| match SessionId::parse(&id) {
            Ok(id) => history.session(&id).map(|session| {
                Some(Conversation {
                    folder: session.project_path.into(),
                    title: session.title.into(),
                })
            }),
            Err(_) => Ok(None),
        })
        .await
    }

    /// What a conversation has cost before anyone resumes it.
    pub(crate) async fn spent(&self, id: String) -> Result<Option<f64>, ApiError> {
        self.query(move |history| match SessionId::parse(&id) {
            Ok(id) => history.spent(&id),
            Err(_) => Ok(None),
        })
        .await
    }

    /// The conversation that was last active in a folder, and when that was, in milliseconds since 1970.
    pub(crate) async fn newest_conversation(
        &self,
        folder: String,
    ) -> Result<Option<(String, i64)>, ApiError> {
        self.query(move |history| {
            let projects = history.projects()?.projects;
            let Some(project) = projects.into_iter().find(|project| project.path == folder) else {
                return Ok(None);
            };
            let sessions = history.sessions(&project.id, Page::first(Page::MAX))?.sessions;
            let newest = sessions
                .into_iter()
                .find(|session| session.project_path == folder);
            Ok(newest.map(|session| {
                let last_active = session.last_active_ms().unwrap_or(0);
                (session.id.as_str().to_owned(), last_active)
            }))
        })
        .await
    }

    /// Runs a query on a thread that may block. Not found becomes `None`.
    async fn query<T: Send + 'static>(
        &self,
        query: impl FnOnce(&History) -> Result<Option<T>, HistoryError> + Send + 'static,
    ) -> Result<Option<T>, ApiError> {
        let transcripts = Arc::clone(&self.transcripts);
        let asked = tokio::task::spawn_blocking(move || query(&*transcripts.history()?));
        match asked.await.map_err(|error| ApiError::internal(&error))? {
            Err(HistoryError::NotFound) => Ok(None),
            answer => answer.map_err(|error| ApiError::internal(&error)),
        }
    }

    /// Subscribes to changes.
    pub(super) fn changes(&self) -> broadcast::Receiver<Bundle> {
        self.transcripts.changes.subscribe()
    }

    pub(super) fn vault(&self) -> &VaultSwitch {
        &self.transcripts.vault
    }

    /// Turns the vault on or off. It is filled in the background.
    pub(super) fn set_vault(&self, on: bool) -> Result<(), HistoryError> {
        self.vault().turn(on)?;
        self.indexer.wake();
        Ok(())
    }

    /// Blocks while it is opened, the first time.
    pub(super) fn history(&self) -> Result<Arc<History>, HistoryError> {
        self.transcripts.history()
    }
}

impl Transcripts {
    fn history(&self) -> Result<Arc<History>, HistoryError> {
        // Held while opening, so that the index is opened once.
        let mut opened = self.opened.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(history) = &*opened {
            return Ok(Arc::clone(history));
        }
        let history = History::open(&self.claude_home, Some(&self.index_dir))?;
        Ok(Arc::clone(opened.insert(Arc::new(history))))
    }
}

/// Brings the index up to date, at the start and whenever transcripts change.
struct Indexer {
    transcripts: Arc<Transcripts>,
    stopping: Arc<AtomicBool>,
    /// Room for one: a change during an update is one more update, however many changes there were.
    wake: SyncSender<()>,
}

impl Indexer {
    fn start(transcripts: Arc<Transcripts>) -> std::io::Result<Self> {
        let (wake, woken) = sync_channel(1);
        let stopping = Arc::new(AtomicBool::new(false));
        let indexer = Self {
            transcripts: Arc::clone(&transcripts),
            stopping: Arc::clone(&stopping),
            wake: wake.clone(),
        };
        std::thread::Builder::new()
            .name("history-index".to_owned())
            .spawn(move || keep_indexed(&transcripts, &stopping, wake, &woken))?;
        Ok(indexer)
    }
}

impl Indexer {
    fn wake(&self) {
        // The channel is full only if the indexer has been woken already.
        self.wake.try_send(()).ok();
    }
}

impl Drop for Indexer {
    fn drop(&mut self) {
        self.stopping.store(true, Ordering::Relaxed);
        let opened = self
            .transcripts
            .opened
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if let Some(history) = &*opened {
            history.stop_indexing();
        }
        self.wake();
    }
}

fn keep_indexed(
    transcripts: &Arc<Transcripts>,
    stopping: &AtomicBool,
    wake: SyncSender<()>,
    woken: &Receiver<()>,
) {
    let history = match transcripts.history() {
        Ok(history) => history,
        Err(error) => return tracing::warn!(%error, "the history can't be read"),
    };
    // Watch before the first update, so that the next update sees what changes during the first.
    let changes = transcripts.changes.clone();
    let watch = history.watch(move |bundle| {
        // Without a subscriber there is nothing to send.
        changes.send(Arc::new(bundle)).ok();
        wake.try_send(()).ok();
    });
    if let Err(error) = &watch {
        tracing::warn!(%error, "transcripts can't be watched: what is new is found after the next start only");
    }
    loop {
        if let Err(error) = history.update_index() {
            tracing::warn!(%error, "the index of the history could not be brought up to date");
        }
        if stopping.load(Ordering::Relaxed) {
            return;
        }
        transcripts.vault.fill_if_due(&history);
        let woken = match transcripts.vault.due_in() {
            Some(due) => woken.recv_timeout(due.max(SOON)),
            None => woken.recv().map_err(|_| RecvTimeoutError::Disconnected),
        };
        if woken == Err(RecvTimeoutError::Disconnected) || stopping.load(Ordering::Relaxed) {
            return;
        }
    }
}
