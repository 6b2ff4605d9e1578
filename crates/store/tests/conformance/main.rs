//! What every store must do. The suite knows only the core's traits; each store gives it a way to be opened.
#![allow(clippy::unwrap_used, reason = "a test that can't go on says where, and ends")]

mod agent;
mod credentials;
mod damaged;
mod found_again;
mod held_up;
mod listing;
mod prompts;
mod sessions;
mod unreadable;
mod upkeep;

use std::path::Path;

use tiller_store::SqliteStore;

/// Opens the store that lives in `folder`; a second call finds what the first one left.
fn open(folder: &Path) -> SqliteStore {
    SqliteStore::open(&folder.join("sessions.db")).unwrap()
}

#[test]
fn a_file_that_is_no_database_is_refused_and_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("sessions.db");
    std::fs::write(&path, "this is not a database, but someone's notes").unwrap();
    assert!(SqliteStore::open(&path).is_err());
    assert_eq!(
        std::fs::read_to_string(&path).unwrap(),
        "this is not a database, but someone's notes"
    );
}

#[cfg(unix)]
#[test]
fn nobody_else_can_read_the_file() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    let _store = open(folder.path());
    for name in ["sessions.db", "sessions.db-wal"] {
        let mode = std::fs::metadata(folder.path().join(name))
            .unwrap()
            .permissions()
            .mode();
        assert_eq!(mode & 0o077, 0, "{name} has mode {mode:o}");
    }
}
