//! The SQLite store fulfils the contract of stores; and tests of what is particular to SQLite: its file, damaged rows,
//! space.
#![allow(clippy::unwrap_used, reason = "a test that can't go on says where, and ends")]

mod compaction;
mod damaged;
mod locked;
mod older;

use std::path::Path;

use tiller_store::SqliteStore;
use tiller_store_suite::Harness;

/// Opens the store that lives in `folder`; a second call finds what the first one left.
fn open(folder: &Path) -> SqliteStore {
    SqliteStore::open(&folder.join("sessions.db")).unwrap()
}

struct SqliteFolder(tempfile::TempDir);

impl Harness for SqliteFolder {
    type Store = SqliteStore;

    const COPIES_IN_STEPS: bool = true;

    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn open(&self) -> SqliteStore {
        open(self.0.path())
    }

    /// The files as they are. What SQLite has only in memory is not part of the database yet.
    fn after_crash(&self) -> Self {
        let copy = Self::new();
        for name in ["sessions.db", "sessions.db-wal"] {
            std::fs::copy(self.0.path().join(name), copy.0.path().join(name)).unwrap();
        }
        copy
    }
}

mod contracts {
    use super::SqliteFolder;

    tiller_store_suite::conformance!(SqliteFolder);
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
