//! The data folder, and the lock of the server that uses it.

use std::fs::{File, TryLockError};
use std::io::{ErrorKind, Write as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use anyhow::{Context, anyhow, bail};
use etcetera::base_strategy::BaseStrategy;
use serde::{Deserialize, Serialize};
use tiller_core::StoreError;
use tiller_store::SqliteStore;
use tokio::task::JoinHandle;
use tokio::time::Instant;

/// How long to retry if the lock is taken. A killed server may have been starting an agent: until that process executes
/// its own program, which takes a millisecond, it holds the server's lock.
const LOCK_PATIENCE: Duration = Duration::from_secs(1);

const LOOK_AGAIN: Duration = Duration::from_millis(20);

const ANNOUNCE_AGAIN: Duration = Duration::from_secs(2);

/// The space that a server needs at its start, most of it for the database's shared memory.
const ROOM: usize = 64 << 10;

/// Tiller's files in the folder, except for the user's own `config.toml`. Access to a folder covers its content.
const OURS: [&str; 9] = [
    "sessions.db",
    "sessions.db-wal",
    "sessions.db-shm",
    "server.lock",
    "server.json",
    "history",
    "vault",
    "runs",
    "open.html",
];

#[derive(Clone)]
pub(crate) struct DataDir {
    path: PathBuf,
}

/// Held while a server uses the folder: two servers on one database would miss each other's changes.
pub(crate) struct ServerLock {
    _file: File,
    notice: PathBuf,
    /// Runs while the notice can't be written.
    announcing: Option<JoinHandle<()>>,
}

/// The address of the running server.
#[derive(Clone, Deserialize, Serialize)]
pub(crate) struct RunningServer {
    pub(crate) pid: u32,
    /// From this machine.
    pub(crate) url: String,
    /// The address for browsers, also on other machines, if it differs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) openable: Option<String>,
}

impl RunningServer {
    /// The address of sign-in links, whichever machine opens them.
    pub(crate) fn link_url(&self) -> &str {
        self.openable.as_deref().unwrap_or(&self.url)
    }
}

impl DataDir {
    pub(crate) fn locate(given: Option<PathBuf>) -> anyhow::Result<Self> {
        let path = match given {
            Some(path) => std::path::absolute(path)?,
            None => etcetera::base_strategy::choose_native_strategy()
                .context("there is no home folder. Choose a data folder with --data-dir")?
                .data_dir()
                .join("tiller"),
        };
        Ok(Self { path })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Creates the folder, for its owner only.
    pub(crate) fn create(&self) -> anyhow::Result<()> {
        let mut builder = std::fs::DirBuilder::new();
        builder.recursive(true);
        #[cfg(unix)]
        std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
        builder
            .create(&self.path)
            .with_context(|| format!("can't create the data folder {}", self.path.display()))
    }

    pub(crate) fn open_store(&self) -> anyhow::Result<SqliteStore> {
        self.create()?;
        let file = self.path.join("sessions.db");
        let path = file.display();
        SqliteStore::open(&file).map_err(|error| match error {
            StoreError::Damaged(reason) => anyhow!(
                "can't open {path}: the database is damaged: {reason}. Put a copy of it back, or move it and {path}-wal away to begin without \
                 sessions: Claude Code keeps the conversations themselves."
            ),
            // Without space for its smallest files, SQLite only reports that reading or writing failed.
            StoreError::Unavailable(_) if let Err(cause) = self.check_room() => {
                cause.context(format!("can't open {path}"))
            }
            error => anyhow!("can't open {path}: {error}"),
        })
    }

    /// Whether anything can be written.
    pub(crate) fn check_room(&self) -> anyhow::Result<()> {
        let written = tempfile::tempfile_in(&self.path).and_then(|mut file| file.write_all(&vec![0; ROOM]));
        let path = self.path.display();
        written.map_err(|error| match error.kind() {
            ErrorKind::StorageFull | ErrorKind::QuotaExceeded => {
                anyhow!("the disk with {path} is full. Free some space, then try again.")
            }
            _ => anyhow!("can't write to {path}: {error}"),
        })
    }

    /// A page that only its user can read, and that redirects a browser to a link.
    pub(crate) fn write_opener(&self, link: &str) -> std::io::Result<PathBuf> {
        let path = self.path.join("open.html");
        let mut file = create_private(&path)?;
        file.write_all(opener(link).as_bytes())?;
        Ok(path)
    }

    pub(crate) fn config_file(&self) -> PathBuf {
        self.path.join("config.toml")
    }

    pub(crate) async fn lock(&self) -> anyhow::Result<ServerLock> {
        self.lock_within(LOCK_PATIENCE).await
    }

    async fn lock_within(&self, patience: Duration) -> anyhow::Result<ServerLock> {
        let deadline = Instant::now() + patience;
        loop {
            if let Some(lock) = self.try_lock()? {
                return Ok(lock);
            }
            if Instant::now() >= deadline {
                break;
            }
            tokio::time::sleep(LOOK_AGAIN).await;
        }
        match self.running() {
            Some(server) => bail!(
                "Tiller is already running with this data folder, at {}. `tiller link` prints a link to it; \
                 --data-dir starts another one.",
                server.url
            ),
            None => bail!(
                "another Tiller is using this data folder. Use --data-dir to start another one beside it."
            ),
        }
    }

    /// `None` if another process has it.
    pub(crate) fn try_lock(&self) -> anyhow::Result<Option<ServerLock>> {
        self.create()?;
        let path = self.path.join("server.lock");
        let file = create_private(&path).with_context(|| format!("can't write {}", path.display()))?;
        match file.try_lock() {
            Ok(()) => {
                self.close_to_others();
                Ok(Some(ServerLock {
                    _file: file,
                    notice: self.notice(),
                    announcing: None,
                }))
            }
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(error)) => Err(error).context("can't lock the data folder"),
        }
    }

    /// Removes the access of other users that an earlier version or a copy gave. The folder itself and files of others
    /// are left unchanged: it may be a folder that others are meant to read.
    fn close_to_others(&self) {
        for name in OURS {
            let path = self.path.join(name);
            match close(&path) {
                Err(error) if error.kind() != ErrorKind::NotFound => {
                    tracing::warn!(%error, "other users may be able to read {}", path.display());
                }
                _ => {}
            }
        }
    }

    /// The running server's own description, if there is a server.
    pub(crate) fn running(&self) -> Option<RunningServer> {
        let free = File::open(self.path.join("server.lock")).is_ok_and(|file| file.try_lock().is_ok());
        if free {
            return None;
        }
        serde_json::from_slice(&std::fs::read(self.notice()).ok()?).ok()
    }

    /// When the last server here announced itself.
    pub(crate) fn announced_at(&self) -> Option<SystemTime> {
        std::fs::metadata(self.notice())
            .and_then(|notice| notice.modified())
            .ok()
    }

    fn notice(&self) -> PathBuf {
        self.path.join("server.json")
    }
}

impl ServerLock {
    /// Tells other commands of the program where the server is. If that fails, the server works all the same, and
    /// retries.
    pub(crate) fn announce(&mut self, server: &RunningServer) {
        let Err(error) = announce(&self.notice, server) else {
            return;
        };
        tracing::warn!(
            "{error:#}. Until that works, `tiller link` and other commands can't find this server."
        );
        let (notice, server) = (self.notice.clone(), server.clone());
        self.announcing = Some(tokio::spawn(async move {
            while announce(&notice, &server).is_err() {
                tokio::time::sleep(ANNOUNCE_AGAIN).await;
            }
        }));
    }
}

fn announce(notice: &Path, server: &RunningServer) -> anyhow::Result<()> {
    let text = serde_json::to_vec(server)?;
    let written = create_private(notice).and_then(|mut file| file.write_all(&text));
    written.with_context(|| format!("can't write {}", notice.display()))
}

/// The page that redirects a browser to a link.
fn opener(link: &str) -> String {
    // The link is our own: an address and a code in hex.
    format!("<!doctype html><meta http-equiv=\"refresh\" content=\"0;url={link}\"><title>Tiller</title>")
}

/// Creates an empty file that only its owner can read.
fn create_private(path: &Path) -> std::io::Result<File> {
    let mut options = File::options();
    options.create(true).truncate(true).write(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

fn close(path: &Path) -> std::io::Result<()> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let found = std::fs::symlink_metadata(path)?;
        let mode = found.permissions().mode();
        if !found.is_symlink() && mode & 0o077 != 0 {
            std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode & 0o700))?;
        }
    }
    Ok(())
}

impl Drop for ServerLock {
    fn drop(&mut self) {
        if let Some(announcing) = &self.announcing {
            announcing.abort();
        }
        if let Err(error) = std::fs::remove_file(&self.notice) {
            tracing::debug!(%error, "can't remove the notice of the running server");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_lock_that_is_about_to_be_released_is_waited_for() {
        let folder = tempfile::tempdir().unwrap();
        let data_dir = DataDir::locate(Some(folder.path().to_owned())).unwrap();
        let held = data_dir.lock().await.unwrap();
        let refused = data_dir.lock_within(Duration::ZERO).await;
        let reason = refused.err().unwrap().to_string();
        assert!(reason.starts_with("another Tiller is using"), "{reason}");

        let waiting = data_dir.lock_within(Duration::from_mins(1));
        let leaving = async {
            // After the first attempt.
            tokio::task::yield_now().await;
            drop(held);
        };
        let (lock, ()) = tokio::join!(waiting, leaving);
        lock.unwrap();
    }
}
