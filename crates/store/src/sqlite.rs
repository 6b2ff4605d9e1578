//! One file, one writer thread, several readers.

mod arrangement;
mod audit;
mod codec;
mod compact;
mod credentials;
mod listing;
mod prompts;
mod schema;
mod sessions;
mod whole;
mod writer;

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use rusqlite::{Connection, ErrorCode, OpenFlags};
use tiller_core::StoreError;

use self::writer::Writer;

/// The store in one SQLite file. Cheap to clone; the file is closed when the last clone is dropped.
#[derive(Clone)]
pub struct SqliteStore {
    shared: Arc<Shared>,
}

struct Shared {
    path: PathBuf,
    writer: Writer,
    /// Idle connections for reading. Opening one costs more than a query.
    idle_readers: Mutex<Vec<Connection>>,
}

/// What can be told about a file without its content.
#[derive(Clone, Debug)]
pub struct Description {
    /// Of the schema.
    pub version: u32,
    /// What SQLite's own check found first. `None`: nothing.
    pub damage: Option<String>,
    /// How many rows each table has.
    pub rows: Vec<(String, serde_json::Value)>,
}

/// Further readers open a connection of their own and close it again.
const KEPT_READERS: usize = 4;

impl SqliteStore {
    /// Opens the file, creates it if it does not exist, and migrates its schema. Blocks until that is done.
    pub fn open(path: &Path) -> Result<Self, StoreError> {
        create_private(path)?;
        let mut connection = Connection::open(path).map_err(store_error)?;
        configure(&connection).map_err(store_error)?;
        make_shrinkable(&connection).map_err(store_error)?;
        schema::migrate(&mut connection)?;
        let writer = Writer::start(connection)?;
        let shared = Shared {
            path: path.to_owned(),
            writer,
            idle_readers: Mutex::new(Vec::new()),
        };
        Ok(Self {
            shared: Arc::new(shared),
        })
    }

    /// Copies the content of the write-ahead log into the file, so that the file can be copied alone. Call it when
    /// nothing more is written. If it fails, the next process that opens the file does it.
    pub async fn settle(&self) {
        let path = self.shared.path.clone();
        let settled = tokio::task::spawn_blocking(move || {
            let connection = Connection::open(path)?;
            connection.busy_timeout(SETTLE_TIME)?;
            connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))
        });
        match settled.await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::debug!(%error, "the log stays beside the database"),
            Err(error) => tracing::debug!(%error, "the log stays beside the database"),
        }
    }

    /// How large everything is, and whether the file is damaged; for those who look for a fault. No content.
    pub async fn describe(&self) -> Result<Description, StoreError> {
        self.read(|connection| {
            let version = connection.pragma_query_value(None, "user_version", |row| row.get(0));
            let check: String = connection
                .query_row("PRAGMA quick_check(1)", [], |row| row.get(0))
                .map_err(store_error)?;
            let sql = "SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name";
            let mut statement = connection.prepare(sql).map_err(store_error)?;
            let tables = statement.query_map([], |row| row.get(0)).map_err(store_error)?;
            let tables: Vec<String> = tables.collect::<Result<_, _>>().map_err(store_error)?;
            let mut rows = Vec::new();
            for table in tables {
                let sql = format!("SELECT count(*) FROM \"{table}\"");
                let count: i64 = connection
                    .query_row(&sql, [], |row| row.get(0))
                    .map_err(store_error)?;
                rows.push((table, count.into()));
            }
            Ok(Description {
                version: version.map_err(store_error)?,
                damage: Some(check).filter(|found| found != "ok"),
                rows,
            })
        })
        .await
    }

    /// Writes, and returns the result of the work when it is on disk.
    async fn write_returning<T: Send + 'static>(
        &self,
        mut work: impl FnMut(&Connection) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T, StoreError> {
        let (sender, receiver) = std::sync::mpsc::channel();
        self.shared
            .writer
            .write(move |connection| {
                let found = work(connection)?;
                // The receiver waits until the work is on disk.
                sender.send(found).ok();
                Ok(())
            })
            .await?;
        // A failed group is run again: the last value counts.
        let last = receiver.try_iter().last();
        last.ok_or_else(|| StoreError::Unavailable("the writer has ended".to_owned()))
    }

    /// Runs a query on a read-only connection. The whole query reads one snapshot: a session that is read from several
    /// tables has each commit completely, or not at all.
    async fn read<T: Send + 'static>(
        &self,
        query: impl FnOnce(&Connection) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let shared = Arc::clone(&self.shared);
        let task = tokio::task::spawn_blocking(move || {
            let connection = shared.reader()?;
            let moment = connection.unchecked_transaction().map_err(store_error)?;
            let result = query(&moment);
            moment.finish().map_err(store_error)?;
            shared.keep_reader(connection);
            result
        });
        task.await
            .map_err(|error| StoreError::Unavailable(error.to_string()))?
    }
}

impl Shared {
    fn reader(&self) -> Result<Connection, StoreError> {
        let idle = self
            .idle_readers
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .pop();
        if let Some(connection) = idle {
            return Ok(connection);
        }
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = Connection::open_with_flags(&self.path, flags).map_err(store_error)?;
        connection.busy_timeout(BUSY_TIMEOUT).map_err(store_error)?;
        Ok(connection)
    }

    fn keep_reader(&self, connection: Connection) {
        let mut idle = self.idle_readers.lock().unwrap_or_else(PoisonError::into_inner);
        if idle.len() < KEPT_READERS {
            idle.push(connection);
        }
    }
}

/// The program's other commands (`tiller key`, `tiller link`) briefly write to the same file.
const BUSY_TIMEOUT: std::time::Duration = std::time::Duration::from_secs(5);

/// How long closing waits for readers. Stopping may take ten seconds in all.
const SETTLE_TIME: std::time::Duration = std::time::Duration::from_secs(1);

const JOURNAL_LIMIT: u32 = 32 << 20;

const CHECKPOINT_PAGES: u32 = 4000;

/// Deleted rows return their space to the system. A file that was created without that is rewritten once.
fn make_shrinkable(connection: &Connection) -> rusqlite::Result<()> {
    const INCREMENTAL: u32 = 2;
    let found: u32 = connection.pragma_query_value(None, "auto_vacuum", |row| row.get(0))?;
    if found != INCREMENTAL {
        connection.pragma_update(None, "auto_vacuum", INCREMENTAL)?;
        connection.execute_batch("VACUUM")?;
    }
    Ok(())
}

fn configure(connection: &Connection) -> rusqlite::Result<()> {
    connection.busy_timeout(BUSY_TIMEOUT)?;
    connection.pragma_update(None, "journal_mode", "WAL")?;
    // Acknowledged data must survive a power cut, not only a crash of the process.
    connection.pragma_update(None, "synchronous", "FULL")?;
    // Every commit writes its session's row first, and rows are deleted by name: checking foreign keys for each of a
    // million rows would cost a fifth of writing them.
    connection.pragma_update(None, "foreign_keys", false)?;
    // Four times SQLite's default: pages that change often are copied back less often.
    connection.pragma_update(None, "wal_autocheckpoint", CHECKPOINT_PAGES)?;
    // After a burst the write-ahead log shrinks again.
    connection.pragma_update(None, "journal_size_limit", JOURNAL_LIMIT)?;
    connection.set_prepared_statement_cache_capacity(64);
    Ok(())
}

/// The file contains conversations: no other user of the machine may read it, from its creation on.
fn create_private(path: &Path) -> Result<(), StoreError> {
    let unavailable = |error: std::io::Error| StoreError::Unavailable(error.to_string());
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder).map_err(unavailable)?;
    }
    let mut options = std::fs::OpenOptions::new();
    options.create(true).append(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path).map(drop).map_err(unavailable)
}

/// Aborts a write for a reason of ours; [`store_error`] recognises it.
fn refuse(reason: StoreError) -> rusqlite::Error {
    rusqlite::Error::ToSqlConversionFailure(Box::new(reason))
}

fn store_error(error: rusqlite::Error) -> StoreError {
    if let rusqlite::Error::ToSqlConversionFailure(reason) = &error
        && let Some(reason) = reason.downcast_ref::<StoreError>()
    {
        return reason.clone();
    }
    // A value that does not fit its column's type was not written by us.
    if matches!(
        error,
        rusqlite::Error::FromSqlConversionFailure(..)
            | rusqlite::Error::IntegralValueOutOfRange(..)
            | rusqlite::Error::InvalidColumnType(..)
            | rusqlite::Error::Utf8Error(..)
    ) {
        return StoreError::Damaged(error.to_string());
    }
    match error.sqlite_error_code() {
        Some(ErrorCode::DiskFull) => StoreError::Full,
        Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => StoreError::Damaged(error.to_string()),
        _ => StoreError::Unavailable(error.to_string()),
    }
}
