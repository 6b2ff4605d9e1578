//! The history's own database: the digests of transcripts, and the words of every message.
//!
//! It only makes queries faster. Everything in it was read from the transcripts and can be read again, so a new index
//! is started if the old one has another version or is damaged.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rusqlite::{Connection, OptionalExtension, params};

use crate::error::{HistoryError, Result};
use crate::private;
use crate::read::follow::{Followed, Saved, Stamp};
use crate::search::build;

/// Increased whenever the tables or their meaning change.
const VERSION: i64 = 9;

pub(crate) struct Index {
    /// The parts that were read from each transcript.
    parts: Database,
    /// The full-text index. A database of its own: filling it takes a while, and saving parts must not wait.
    pub(crate) words: Database,
}

impl Index {
    /// Opens the index in `folder`, or starts a new one if the old one can't be used.
    pub(crate) fn open(folder: &Path) -> Result<Self> {
        private::make_or_close_folder(folder)?;
        let index = Self {
            parts: Database::at(folder.join("history.db"), &PARTS),
            words: Database::at(folder.join("search.db"), &WORDS),
        };
        // Every caller needs this database. If it can't be opened, the other one can't be opened either.
        drop(index.parts.prepare()?);
        Ok(index)
    }

    /// Deletes everything and starts afresh.
    pub(crate) fn renew(&self) -> Result<()> {
        self.parts.renew()?;
        self.words.renew()
    }

    /// Deletes the full-text index if the error says that it is damaged.
    pub(crate) fn mend_words(&self, error: &HistoryError) -> Result<()> {
        if error.is_damage() {
            tracing::warn!(%error, "the search index of the history is damaged and will be built again");
            self.words.renew()?;
        }
        Ok(())
    }

    /// Deletes the saved parts if the error says that they are damaged.
    pub(crate) fn mend_parts(&self, error: &HistoryError) -> Result<()> {
        if error.is_damage() {
            self.parts.renew()?;
        }
        Ok(())
    }

    pub(crate) fn load<P: Saved>(&self, path: &str) -> Result<Option<Followed<P>>> {
        let sql = format!(
            "SELECT inode, size, modified, offset, tail, data FROM {} WHERE path = ?",
            P::TABLE
        );
        self.parts.read(|connection| {
            let row = connection
                .prepare_cached(&sql)?
                .query_row([path], kept)
                .optional()?;
            Ok(row.flatten())
        })
    }

    /// Calls `take` with every row.
    pub(crate) fn load_all<P: Saved>(&self, mut take: impl FnMut(&str, Followed<P>)) -> Result<()> {
        let sql = format!(
            "SELECT inode, size, modified, offset, tail, data, path FROM {}",
            P::TABLE
        );
        self.parts.read(|connection| {
            let mut statement = connection.prepare_cached(&sql)?;
            let mut rows = statement.query([])?;
            while let Some(row) = rows.next()? {
                if let (Some(kept), Ok(path)) = (kept(row)?, row.get_ref(6)?.as_str()) {
                    take(path, kept);
                }
            }
            Ok(())
        })
    }

    pub(crate) fn save<'a, P: Saved + 'a>(
        &self,
        parts: impl IntoIterator<Item = (&'a str, &'a Followed<P>)>,
    ) -> Result<()> {
        let sql = format!(
            "INSERT OR REPLACE INTO {} (path, inode, size, modified, offset, tail, data) VALUES (?, ?, ?, ?, ?, ?, ?)",
            P::TABLE
        );
        self.parts.write(|writer| {
            let transaction = writer.transaction()?;
            {
                let mut statement = transaction.prepare_cached(&sql)?;
                for (path, followed) in parts {
                    let Followed {
                        stamp,
                        offset,
                        check,
                        part,
                        ..
                    } = followed;
                    statement.execute(params![
                        path,
                        stamp.inode.cast_signed(),
                        stamp.size.cast_signed(),
                        stamp.modified_ns,
                        offset.cast_signed(),
                        check.cast_signed(),
                        part.to_bytes()
                    ])?;
                }
            }
            transaction.commit()?;
            Ok(())
        })
    }

    /// Removes files that no longer exist.
    pub(crate) fn forget<P: Saved>(&self, paths: &[Arc<str>]) -> Result<()> {
        self.parts.write(|writer| {
            let transaction = writer.transaction()?;
            for path in paths {
                transaction.execute(&format!("DELETE FROM {} WHERE path = ?", P::TABLE), [&**path])?;
            }
            transaction.commit()?;
            Ok(())
        })
    }
}

/// A saved part. `None` if it can't be decoded; then the transcript is read again.
fn kept<P: Saved>(row: &rusqlite::Row<'_>) -> rusqlite::Result<Option<Followed<P>>> {
    let number = |column: usize| row.get::<_, i64>(column).map(i64::cast_unsigned);
    let Some(part) = row.get_ref(5)?.as_blob().ok().and_then(P::from_bytes) else {
        return Ok(None);
    };
    Ok(Some(Followed {
        stamp: Stamp {
            inode: number(0)?,
            size: number(1)?,
            modified_ns: row.get(2)?,
        },
        offset: number(3)?,
        check: number(4)?,
        part,
        with_unfinished: None,
    }))
}

/// How a database is created, and how obvious damage is detected.
struct Schema {
    create: &'static [&'static str],
    /// The cache size of each connection, in kilobytes.
    cache: u32,
    /// Reads the root of every table; a thorough check would read the whole file.
    check: &'static str,
}

const PARTS: Schema = Schema {
    create: &["CREATE TABLE digest (path TEXT PRIMARY KEY, inode INTEGER NOT NULL, size INTEGER NOT NULL,
               modified INTEGER NOT NULL, offset INTEGER NOT NULL, tail INTEGER NOT NULL, data BLOB NOT NULL);
             CREATE TABLE outline (path TEXT PRIMARY KEY, inode INTEGER NOT NULL, size INTEGER NOT NULL,
               modified INTEGER NOT NULL, offset INTEGER NOT NULL, tail INTEGER NOT NULL, data BLOB NOT NULL);
             CREATE TABLE ledger (path TEXT PRIMARY KEY, inode INTEGER NOT NULL, size INTEGER NOT NULL,
               modified INTEGER NOT NULL, offset INTEGER NOT NULL, tail INTEGER NOT NULL, data BLOB NOT NULL);"],
    // Read once as a whole, or row by row: a cache would not help.
    cache: 500,
    check: "SELECT (SELECT count(path) FROM digest), (SELECT count(path) FROM outline), (SELECT count(path) FROM ledger)",
};

/// `source` is a file whose words are in the index, up to `offset`; `span` is a range of its messages, numbered from
/// `first`, the newest of which has the time `newest`; the full-text table `message` has the words of each number.
/// Numbers grow with time, except for files that are added late, and are never reused. A number without a span is
/// ignored: that is how a file is removed.
const WORDS: Schema = Schema {
    create: &[
        "CREATE TABLE source (id INTEGER PRIMARY KEY AUTOINCREMENT, path TEXT NOT NULL UNIQUE, inode INTEGER NOT NULL,
           size INTEGER NOT NULL, modified INTEGER NOT NULL, offset INTEGER NOT NULL, tail INTEGER NOT NULL);
         CREATE TABLE span (first INTEGER PRIMARY KEY, count INTEGER NOT NULL, source INTEGER NOT NULL,
           newest INTEGER NOT NULL, messages BLOB NOT NULL);
         CREATE INDEX span_source ON span (source);
         CREATE TABLE counter (next INTEGER NOT NULL);
         INSERT INTO counter VALUES (1);",
        build::CREATE,
    ],
    cache: 4000,
    check: "SELECT (SELECT count(id) FROM source), (SELECT count(first) FROM span), (SELECT next FROM counter),
              (SELECT max(id) FROM message_data), (SELECT min(segid) FROM message_idx)",
};

/// One SQLite file, with one writer and a few readers that need not wait for it. Opened on first use.
pub(crate) struct Database {
    path: PathBuf,
    schema: &'static Schema,
    writer: Mutex<Option<Connection>>,
    readers: Mutex<Readers>,
}

#[derive(Default)]
struct Readers {
    /// Whether the file was checked, and recreated if it was unusable.
    is_sound: bool,
    idle: Vec<Connection>,
}

impl Database {
    fn at(path: PathBuf, schema: &'static Schema) -> Self {
        Self {
            path,
            schema,
            writer: Mutex::default(),
            readers: Mutex::default(),
        }
    }

    /// Makes sure that there is a usable database.
    fn prepare(&self) -> Result<MutexGuard<'_, Readers>> {
        let mut readers = self.readers.lock().unwrap_or_else(PoisonError::into_inner);
        if !readers.is_sound {
            let _alone = self.lock()?;
            // If the file can't be created, opening it fails next, with the reason.
            private::make_file(&self.path).ok();
            let checked =
                connect(&self.path, self.schema).and_then(|connection| sound(connection, self.schema));
            let connection = match checked {
                Ok(Some(connection)) => connection,
                Ok(None) => create(&self.path, self.schema)?,
                // The file is fine and will be usable again.
                Err(error) if passes(&error) => return Err(error.into()),
                Err(error) => {
                    tracing::warn!(%error, "an index of the history is damaged and will be built again");
                    create(&self.path, self.schema)?
                }
            };
            readers.idle.push(connection);
            readers.is_sound = true;
        }
        Ok(readers)
    }

    /// Keeps other processes from checking and creating the same database, until the file is closed: otherwise one
    /// process would delete what the other has just created.
    fn lock(&self) -> Result<std::fs::File> {
        let path = self.path.with_extension("lock");
        private::make_file(&path)?;
        let file = std::fs::File::options().write(true).open(&path)?;
        file.lock()?;
        Ok(file)
    }

    /// Runs `run` on the connection that may write.
    pub(crate) fn write<T>(&self, run: impl FnOnce(&mut Connection) -> Result<T>) -> Result<T> {
        // A panic during a write rolled the transaction back; the connection itself is fine.
        let mut writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
        let connection = match &mut *writer {
            Some(connection) => connection,
            none => {
                drop(self.prepare()?);
                none.insert(connect(&self.path, self.schema)?)
            }
        };
        run(connection)
    }

    /// Runs `run` on a connection of its own.
    pub(crate) fn read<T>(&self, run: impl FnOnce(&Connection) -> Result<T>) -> Result<T> {
        let pooled = self.prepare()?.idle.pop();
        let connection = match pooled {
            Some(connection) => connection,
            None => connect(&self.path, self.schema)?,
        };
        let result = run(&connection)?;
        let mut readers = self.readers.lock().unwrap_or_else(PoisonError::into_inner);
        if readers.idle.len() < 2 {
            readers.idle.push(connection);
        }
        Ok(result)
    }

    /// Releases the memory that a long write took.
    pub(crate) fn rest(&self) -> Result<()> {
        *self.writer.lock().unwrap_or_else(PoisonError::into_inner) = None;
        let readers = self.readers.lock().unwrap_or_else(PoisonError::into_inner);
        for reader in &readers.idle {
            reader.execute_batch("PRAGMA shrink_memory")?;
        }
        Ok(())
    }

    pub(crate) fn renew(&self) -> Result<()> {
        // The old database must be closed before its file is replaced.
        let mut writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
        let mut readers = self.readers.lock().unwrap_or_else(PoisonError::into_inner);
        *writer = None;
        *readers = Readers::default();
        let _alone = self.lock()?;
        *writer = Some(create(&self.path, self.schema)?);
        readers.is_sound = true;
        Ok(())
    }
}

fn connect(path: &Path, schema: &Schema) -> rusqlite::Result<Connection> {
    let connection = Connection::open(path)?;
    connection.busy_timeout(std::time::Duration::from_secs(5))?;
    // Everything in here can be read again from the transcripts: no write needs to wait for the disk.
    connection.execute_batch(&format!(
        "PRAGMA journal_mode = WAL; PRAGMA synchronous = OFF; PRAGMA cache_size = -{}; PRAGMA temp_store = MEMORY;
         PRAGMA journal_size_limit = 4000000;",
        schema.cache
    ))?;
    Ok(connection)
}

/// Whether the error is temporary: the disk is full or fails, or another process holds a lock.
fn passes(error: &rusqlite::Error) -> bool {
    use rusqlite::ErrorCode::{DatabaseBusy, DatabaseLocked, DiskFull, SystemIoFailure};
    let code = error.sqlite_error_code();
    matches!(
        code,
        Some(DatabaseBusy | DatabaseLocked | DiskFull | SystemIoFailure)
    )
}

/// The connection, if its tables have this version and no obvious damage.
fn sound(connection: Connection, schema: &Schema) -> rusqlite::Result<Option<Connection>> {
    let version: i64 = connection.query_row("PRAGMA user_version", [], |row| row.get(0))?;
    if version != VERSION {
        return Ok(None);
    }
    connection.query_row(schema.check, [], |_| Ok(()))?;
    Ok(Some(connection))
}

fn create(path: &Path, schema: &Schema) -> Result<Connection> {
    for suffix in ["", "-wal", "-shm"] {
        let mut file = path.as_os_str().to_owned();
        file.push(suffix);
        match std::fs::remove_file(&file) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error.into()),
            _ => {}
        }
    }
    private::make_file(path)?;
    let connection = connect(path, schema)?;
    connection.execute_batch(&format!(
        "BEGIN; {} PRAGMA user_version = {VERSION}; COMMIT;",
        schema.create.concat()
    ))?;
    Ok(connection)
}
