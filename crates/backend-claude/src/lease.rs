//! A lease on a conversation: at most one Tiller of this user starts an agent on it.
//!
//! It is a lock on a file, so it ends with the process that holds it, however that ends. A killed process leaves an
//! unlocked file: it blocks no other server, and the next server to start removes it.

use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rustix::fs::FlockOperation;

/// How long to wait for a lease that another server holds. An agent that was just ended, so that its conversation can
/// continue here, is leased until its server has noticed the end.
pub(crate) const PATIENCE: Duration = Duration::from_secs(10);

/// If nothing depends on it. A server that removes stale leases holds each lock for a moment.
pub(crate) const NO_PATIENCE: Duration = Duration::from_millis(20);

/// How long a conversation is reserved for an agent that is about to be launched.
const CLAIMED_FOR: Duration = Duration::from_secs(20);

const BETWEEN_TRIES: Duration = Duration::from_millis(5);

/// The extension of the lock files.
const EXTENSION: &str = "lock";

/// While this lives, no other Tiller of this user may start an agent on the conversation, even if two servers with
/// their own data folders share the CLI's home.
#[derive(Debug)]
pub(crate) struct Lease {
    /// Locked. `None`: leases can't be stored here.
    file: Option<File>,
    path: PathBuf,
}

impl Lease {
    /// `None`: another server holds the lease. If leases can't be stored at all, everyone gets one: that must not stop
    /// the work.
    pub(crate) async fn take(conversation: &str, patience: Duration) -> Option<Self> {
        Self::take_in(&folder(), conversation, patience).await
    }

    async fn take_in(folder: &Path, conversation: &str, patience: Duration) -> Option<Self> {
        let path = folder.join(format!("{conversation}.{EXTENSION}"));
        let trying = async {
            loop {
                match private_folder(folder).and_then(|()| lock(&path, true)) {
                    Ok(Some(file)) => return Some(file),
                    Ok(None) => tokio::time::sleep(BETWEEN_TRIES).await,
                    Err(error) => {
                        tracing::warn!(%error, path = %path.display(), "can't store the lease of a conversation");
                        return None;
                    }
                }
            }
        };
        let file = tokio::time::timeout(patience, trying).await.ok()?;
        Some(Self { file, path })
    }

    /// Removes the files of killed servers.
    pub(crate) fn sweep() {
        Self::sweep_in(&folder());
    }

    fn sweep_in(folder: &Path) {
        let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
        let files = entries.map(|entry| entry.path());
        for path in files.filter(|path| path.extension().is_some_and(|found| found == EXTENSION)) {
            match lock(&path, false) {
                // Removed as it is dropped.
                Ok(Some(file)) => drop(Self {
                    file: Some(file),
                    path,
                }),
                Ok(None) => {}
                Err(error) => tracing::debug!(%error, "can't look at a lease"),
            }
        }
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        // Still locked: the next process to open it creates a new file.
        if self.file.is_some()
            && let Err(error) = std::fs::remove_file(&self.path)
        {
            tracing::debug!(%error, "a lease was already removed");
        }
    }
}

/// Leases that were taken for agents which are about to be launched.
#[derive(Clone, Default)]
pub(crate) struct Claims(Arc<Mutex<HashMap<String, Arc<Lease>>>>);

impl Claims {
    fn all(&self) -> MutexGuard<'_, HashMap<String, Arc<Lease>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes the lease of a conversation; false if another server holds it. If the agent is not launched, the lease is
    /// released soon.
    #[cfg_attr(
        not(target_os = "linux"),
        allow(dead_code, reason = "nobody can be found there")
    )]
    pub(crate) async fn make(&self, conversation: &str) -> bool {
        if self.all().contains_key(conversation) {
            return true;
        }
        let Some(lease) = Lease::take(conversation, NO_PATIENCE).await else {
            return false;
        };
        let lease = Arc::new(lease);
        let (claims, conversation, unused) = (self.clone(), conversation.to_owned(), Arc::downgrade(&lease));
        self.all().insert(conversation.clone(), lease);
        tokio::spawn(async move {
            tokio::time::sleep(CLAIMED_FOR).await;
            if let Some(unused) = unused.upgrade() {
                let mut all = claims.all();
                if all
                    .get(&conversation)
                    .is_some_and(|held| Arc::ptr_eq(held, &unused))
                {
                    all.remove(&conversation);
                }
            }
        });
        true
    }

    /// The claimed lease, for the agent that is launched now.
    pub(crate) fn take(&self, conversation: &str) -> Option<Arc<Lease>> {
        self.all().remove(conversation)
    }
}

/// The locked file; `None` if another process has locked it, or has just removed it.
fn lock(path: &Path, create: bool) -> io::Result<Option<File>> {
    let mut options = File::options();
    options.create(create).truncate(false).write(true).mode(0o600);
    let file = options.open(path)?;
    match rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => {}
        Err(rustix::io::Errno::WOULDBLOCK) => return Ok(None),
        Err(error) => return Err(error.into()),
    }
    // The last holder may have removed the file between our opening and our locking it.
    let same = std::fs::metadata(path).is_ok_and(|now| {
        file.metadata()
            .is_ok_and(|ours| (ours.dev(), ours.ino()) == (now.dev(), now.ino()))
    });
    Ok(same.then_some(file))
}

/// The folder of this user's leases.
pub fn folder() -> PathBuf {
    let runtime = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from);
    if let Some(folder) = runtime.filter(|folder| folder.is_absolute() && folder.is_dir()) {
        folder.join("tiller-leases")
    } else {
        let user = rustix::process::geteuid().as_raw();
        std::env::temp_dir().join(format!("tiller-leases-{user}"))
    }
}

/// Creates the folder if necessary. In a folder that all users share, one that belongs to another user is not used.
fn private_folder(folder: &Path) -> io::Result<()> {
    std::fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(folder)?;
    let about = std::fs::symlink_metadata(folder)?;
    let ours =
        about.is_dir() && about.uid() == rustix::process::geteuid().as_raw() && about.mode() & 0o022 == 0;
    if ours {
        Ok(())
    } else {
        Err(io::Error::other("the folder belongs to another user"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(leases: &Path) -> usize {
        std::fs::read_dir(leases).unwrap().count()
    }

    #[tokio::test]
    async fn a_lease_can_be_taken_only_after_its_release() {
        let folder = tempfile::tempdir().unwrap();
        let leases = folder.path().join("leases");
        let first = Lease::take_in(&leases, "c1", NO_PATIENCE).await.expect("free");
        assert!(Lease::take_in(&leases, "c1", NO_PATIENCE).await.is_none());
        assert!(
            Lease::take_in(&leases, "c2", NO_PATIENCE).await.is_some(),
            "another conversation"
        );
        drop(first);
        assert!(Lease::take_in(&leases, "c1", NO_PATIENCE).await.is_some());
        assert_eq!(count(&leases), 0, "nothing is left");
    }

    #[tokio::test]
    async fn leases_of_a_killed_server_block_nobody_and_are_removed() {
        let folder = tempfile::tempdir().unwrap();
        let leases = folder.path().join("leases");
        let held = Lease::take_in(&leases, "held", NO_PATIENCE).await.expect("free");
        for left in ["left.lock", "left-too.lock"] {
            std::fs::write(leases.join(left), "").unwrap();
        }
        std::fs::write(leases.join("a-users-note"), "").unwrap();
        let taken = Lease::take_in(&leases, "left", NO_PATIENCE)
            .await
            .expect("nobody holds it");
        Lease::sweep_in(&leases);
        assert_eq!(count(&leases), 3, "those that are held, and what is none of ours");
        assert!(Lease::take_in(&leases, "held", NO_PATIENCE).await.is_none());
        drop((held, taken));
        assert_eq!(count(&leases), 1);
        Lease::sweep_in(&folder.path().join("never made"));
    }

    #[tokio::test]
    async fn a_taken_lease_is_waited_for() {
        let leases = tempfile::tempdir().unwrap();
        let path = leases.path().join("c1.lock");
        let other = lock(&path, true).unwrap().expect("free");
        let ending = async {
            std::fs::remove_file(&path).unwrap();
            drop(other);
        };
        let (taken, ()) = tokio::join!(Lease::take_in(leases.path(), "c1", PATIENCE), ending);
        assert!(taken.is_some());
        assert_eq!(lock(&path, false).unwrap().map(drop), None, "it is held");
    }
}
