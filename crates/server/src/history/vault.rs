//! The archive of transcripts: its switch, and when it is filled.

use std::io;
use std::path::PathBuf;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use tiller_history::{History, HistoryError, Page, Session, SessionId, SessionPage, Stored, Vault};

/// Time between rounds of archiving. A growing transcript would otherwise be compressed again for every line.
const ROUND: Duration = Duration::from_mins(10);

/// The vault of the data folder. Off, and without a folder, until someone turns it on.
pub(super) struct VaultSwitch {
    folder: PathBuf,
    /// When it was last filled.
    filled: Mutex<Option<Instant>>,
}

impl VaultSwitch {
    pub(super) fn new(folder: PathBuf) -> Self {
        Self {
            folder,
            filled: Mutex::new(None),
        }
    }

    /// The file that marks a vault as turned on. Turning it off keeps its content.
    fn mark(&self) -> PathBuf {
        self.folder.join("on")
    }

    pub(super) fn is_on(&self) -> bool {
        self.mark().exists()
    }

    pub(super) fn turn(&self, on: bool) -> Result<(), HistoryError> {
        if on {
            Vault::open(&self.folder)?;
            std::fs::write(self.mark(), "Delete this file to stop archiving transcripts.\n")?;
            // Fill it at once.
            self.note_filled(None);
            return Ok(());
        }
        match std::fs::remove_file(self.mark()) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error.into()),
            _ => Ok(()),
        }
    }

    fn note_filled(&self, when: Option<Instant>) {
        *self
            .filled
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner) = when;
    }

    /// Time until the next round of archiving; `None` while the vault is off.
    pub(super) fn due_in(&self) -> Option<Duration> {
        let filled = *self
            .filled
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        self.is_on()
            .then(|| filled.map_or(Duration::ZERO, |filled| ROUND.saturating_sub(filled.elapsed())))
    }

    /// Whether a round of archiving is running or about to begin.
    pub(super) fn is_archiving(&self) -> bool {
        self.due_in() == Some(Duration::ZERO)
    }

    /// Archives what is new, if the vault is on and the next round is due.
    pub(super) fn fill_if_due(&self, history: &History) {
        if !self.is_archiving() {
            return;
        }
        match Vault::open(&self.folder).and_then(|vault| vault.archive(history)) {
            Ok(done) if done.sessions > 0 => {
                tracing::info!(
                    sessions = done.sessions,
                    bytes = done.bytes,
                    "transcripts were archived"
                );
            }
            Ok(_) => {}
            Err(error) => tracing::warn!(%error, "transcripts could not be archived"),
        }
        self.note_filled(Some(Instant::now()));
    }

    /// The vault's size, and the sessions that exist only there.
    pub(super) fn content(
        &self,
        history: &History,
        page: Page,
    ) -> Result<(Stored, SessionPage), HistoryError> {
        if !self.folder.exists() {
            let sessions = Vec::new();
            return Ok((Stored::default(), SessionPage { sessions, total: 0 }));
        }
        let vault = Vault::open(&self.folder)?;
        let sessions = vault.sessions(history)?;
        let total = sessions.len();
        let sessions = super::access::paged(sessions, page);
        Ok((vault.stored()?, SessionPage { sessions, total }))
    }

    /// Restores a session into the CLI's home.
    pub(super) fn restore(&self, history: &History, id: &SessionId) -> Result<Session, HistoryError> {
        if !self.folder.exists() {
            return Err(HistoryError::NotFound);
        }
        Vault::open(&self.folder)?.restore(id, history.home())?;
        history.session(id)
    }
}
