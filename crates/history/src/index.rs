//! The history's own database: what has been read already, and the words of every message.
//!
//! It only ever makes things faster. Whatever it holds was read from the transcripts and can be read again, so anything
//! wrong with it (another version, damage) is answered by starting a new one.

mod build;
mod find;

use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use rusqlite::{Connection, OptionalExtension, params};

use crate::error::Result;
use crate::follow::{Followed, Part, Stamp};

pub(crate) use build::{Cancel, build};
pub(crate) use find::{Hit, Wanted, find, owner};

/// Changes whenever the tables, or the meaning of what is in them, change.
const VERSION: i64 = 1;
const NAME: &str = "history.db";

pub(crate) struct Index {
    path: PathBuf,
    writer: Mutex<Connection>,
    /// Connections for searching, which must not wait for the writer.
    readers: Mutex<Vec<Connection>>,
}

impl Index {
    /// Opens the index in `folder`, or starts a new one if it can't be used.
    pub(crate) fn open(folder: &Path) -> Result<Self> {
        std::fs::create_dir_all(folder)?;
        let path = folder.join(NAME);
        let writer = match connect(&path).and_then(prepared) {
            Ok(Some(connection)) => connection,
            Ok(None) => renew(&path)?,
            Err(error) => {
                tracing::warn!(%error, "the index of the history is damaged and will be built again");
                renew(&path)?
            }
        };
        Ok(Self {
            path,
            writer: Mutex::new(writer),
            readers: Mutex::default(),
        })
    }

    fn writer(&self) -> MutexGuard<'_, Connection> {
        // A panic while writing rolled the transaction back; the connection itself is fine.
        self.writer.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Throws everything away and starts anew.
    pub(crate) fn renew(&self) -> Result<()> {
        let mut writer = self.writer();
        self.readers
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clear();
        *writer = Connection::open_in_memory()?;
        *writer = renew(&self.path)?;
        Ok(())
    }

    /// Runs something on a connection of its own.
    fn read<T>(&self, run: impl FnOnce(&Connection) -> Result<T>) -> Result<T> {
        let pooled = self.readers.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let connection = match pooled {
            Some(connection) => connection,
            None => connect(&self.path)?,
        };
        let result = run(&connection)?;
        let mut readers = self.readers.lock().unwrap_or_else(PoisonError::into_inner);
        if readers.len() < 2 {
            readers.push(connection);
        }
        Ok(result)
    }

    pub(crate) fn load<P: Part>(&self, path: &str) -> Result<Option<Followed<P>>> {
        let sql = format!(
            "SELECT inode, size, modified, offset, tail, data FROM {} WHERE path = ?",
            P::TABLE
        );
        self.read(|connection| {
            let row = connection
                .prepare_cached(&sql)?
                .query_row([path], |row| followed(row, 0))
                .optional()?;
            Ok(row.flatten())
        })
    }

    pub(crate) fn load_all<P: Part>(&self) -> Result<Vec<(String, Followed<P>)>> {
        let sql = format!(
            "SELECT path, inode, size, modified, offset, tail, data FROM {}",
            P::TABLE
        );
        self.read(|connection| {
            let mut statement = connection.prepare_cached(&sql)?;
            let mut rows = statement.query([])?;
            let mut all = Vec::new();
            while let Some(row) = rows.next()? {
                if let Some(part) = followed(row, 1)? {
                    all.push((row.get(0)?, part));
                }
            }
            Ok(all)
        })
    }

    pub(crate) fn save<'a, P: Part + 'a>(
        &self,
        parts: impl IntoIterator<Item = (&'a str, &'a Followed<P>)>,
    ) -> Result<()> {
        let sql = format!(
            "INSERT OR REPLACE INTO {} (path, inode, size, modified, offset, tail, data) VALUES (?, ?, ?, ?, ?, ?, ?)",
            P::TABLE
        );
        let mut writer = self.writer();
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
    }

    /// Forgets files that are gone.
    pub(crate) fn forget<P: Part>(&self, paths: &[String]) -> Result<()> {
        let mut writer = self.writer();
        let transaction = writer.transaction()?;
        for path in paths {
            transaction.execute(&format!("DELETE FROM {} WHERE path = ?", P::TABLE), [path])?;
        }
        transaction.commit()?;
        Ok(())
    }
}

fn followed<P: Part>(row: &rusqlite::Row<'_>, first: usize) -> rusqlite::Result<Option<Followed<P>>> {
    let number = |column: usize| row.get::<_, i64>(first + column).map(i64::cast_unsigned);
    let stamp = Stamp {
        inode: number(0)?,
        size: number(1)?,
        modified_ns: row.get(first + 2)?,
    };
    let data = row.get_ref(first + 5)?.as_blob()?;
    Ok(P::from_bytes(data).map(|part| Followed {
        stamp,
        offset: number(3).unwrap_or(0),
        check: number(4).unwrap_or(0),
        part,
        with_unfinished: None,
    }))
}

fn connect(path: &Path) -> rusqlite::Result<Connection> {
    let connection = Connection::open(path)?;
    connection.busy_timeout(std::time::Duration::from_secs(5))?;
    // Everything in here can be read again from the transcripts: no write is worth waiting for the disk.
    connection.execute_batch(
        "PRAGMA journal_mode = WAL; PRAGMA synchronous = OFF; PRAGMA cache_size = -8000; PRAGMA temp_store = MEMORY;
         PRAGMA journal_size_limit = 4000000; PRAGMA mmap_size = 0;",
    )?;
    Ok(connection)
}

/// The connection, if its tables are of this version and not obviously damaged.
fn prepared(connection: Connection) -> rusqlite::Result<Option<Connection>> {
    let version: i64 = connection.query_row("PRAGMA user_version", [], |row| row.get(0))?;
    if version != VERSION {
        return Ok(None);
    }
    // Looks at the roots of all tables; a thorough check would read the whole file.
    for table in ["digest", "outline", "ledger", "source", "span", "counter"] {
        connection.query_row(
            &format!("SELECT count(*) FROM (SELECT rowid FROM {table} LIMIT 1)"),
            [],
            |_| Ok(()),
        )?;
    }
    connection.query_row(
        "SELECT count(*) FROM words WHERE words MATCH '\"index\" AND \"damaged\"'",
        [],
        |_| Ok(()),
    )?;
    Ok(Some(connection))
}

fn renew(path: &Path) -> Result<Connection> {
    for suffix in ["", "-wal", "-shm"] {
        let mut file = path.as_os_str().to_owned();
        file.push(suffix);
        match std::fs::remove_file(&file) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error.into()),
            _ => {}
        }
    }
    let connection = connect(path)?;
    let part = |table: &str| {
        format!(
            "CREATE TABLE {table} (path TEXT PRIMARY KEY, inode INTEGER NOT NULL, size INTEGER NOT NULL,
             modified INTEGER NOT NULL, offset INTEGER NOT NULL, tail INTEGER NOT NULL, data BLOB NOT NULL);"
        )
    };
    // `source` is a file whose words are in the index, up to `offset`; `span` is a run of its messages, numbered from
    // `first`; `words` knows which numbers have which words. Numbers grow with time, so the newest come last. A number
    // whose span is gone means nothing: that is how a file is taken out.
    connection.execute_batch(&format!(
        "BEGIN; {} {} {}
         CREATE TABLE source (id INTEGER PRIMARY KEY AUTOINCREMENT, path TEXT NOT NULL UNIQUE, inode INTEGER NOT NULL,
           size INTEGER NOT NULL, modified INTEGER NOT NULL, offset INTEGER NOT NULL, tail INTEGER NOT NULL);
         CREATE TABLE span (first INTEGER PRIMARY KEY, count INTEGER NOT NULL, source INTEGER NOT NULL, messages BLOB NOT NULL);
         CREATE INDEX span_source ON span (source);
         CREATE TABLE counter (next INTEGER NOT NULL);
         INSERT INTO counter VALUES (1);
         CREATE VIRTUAL TABLE words USING fts5(list, content = '', columnsize = 0, detail = none, tokenize = 'ascii');
         INSERT INTO words (words, rank) VALUES ('hashsize', 16777216);
         PRAGMA user_version = {VERSION}; COMMIT;",
        part("digest"),
        part("outline"),
        part("ledger")
    ))?;
    Ok(connection)
}
