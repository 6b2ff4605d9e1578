//! Adds the words of all transcripts to the index.
//!
//! Transcripts are read one after another, the most recently used last, and every message gets a number: its rowid in
//! the full-text table. The table has only the words; the text stays in the transcript.

use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasherDefault, Hasher};
use std::io::Read as _;
use std::sync::atomic::{AtomicBool, Ordering};

use rusqlite::{Connection, OptionalExtension, Row, Transaction, TransactionBehavior, params};

use crate::error::{HistoryError, Result};
use crate::read::follow::{Stamp, fingerprint};
use crate::read::json::Raw;
use crate::read::lines::{Buffer, Line, read_lines};
use crate::read::place::{Projects, Transcript};
use crate::read::record::{Record, millis};
use crate::search::text;

use super::varint;
use crate::index::Index;

/// The full-text table. It stores neither the text nor the sizes of messages, which are not needed. The text is cut
/// into words beforehand, separated by blanks, which the tokenizer finds again. `hashsize` is how many bytes of new
/// words are collected in memory before they are written: larger batches mean fewer pieces to merge.
pub(crate) const CREATE: &str =
    "CREATE VIRTUAL TABLE message USING fts5(words, content = '', columnsize = 0, tokenize = 'ascii');
     INSERT INTO message (message, rank) VALUES ('hashsize', 16000000);
     INSERT INTO message (message, rank) VALUES ('automerge', 8);";

/// How much of a large result in a file of its own is searchable.
pub(crate) const MAX_PERSISTED: u64 = 2 * 1024 * 1024;
/// A transaction ends with the file in which it has read this much.
const TRANSACTION: u64 = 64 * 1024 * 1024;
/// After so many bytes the memory of indexing is released.
const MUCH: u64 = 16 * 1024 * 1024;
/// How far back to search for the calls that the first new results answer.
const LOOK_BACK: u64 = 512 * 1024;

/// Asks a running build to stop at the next file.
#[derive(Debug, Default)]
pub(crate) struct Cancel(AtomicBool);

impl Cancel {
    pub(crate) fn cancel(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    pub(crate) fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// The position of a message in its transcript.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) offset: u64,
    pub(super) length: u32,
    /// All searchable text is before this offset in the line.
    pub(super) text_end: u32,
    /// The result is stored in another file.
    pub(super) is_elsewhere: bool,
    pub(super) time: i64,
}

#[derive(Clone, Copy)]
struct Source {
    id: i64,
    stamp: Stamp,
    offset: u64,
    check: u64,
}

/// Indexes the new parts of `files`, in this order. Returns the number of bytes read.
pub(crate) fn build(
    index: &Index,
    projects: &Projects,
    mut files: Vec<Transcript>,
    cancel: &Cancel,
) -> Result<u64> {
    if index.words.write(|writer| is_mostly_stale(writer))? {
        index.words.renew()?;
    }
    let known = index.words.write(|writer| sources(writer))?;
    let gone: Vec<i64> = {
        let present: HashSet<&str> = files.iter().map(|file| file.path.as_str()).collect();
        known
            .iter()
            .filter(|(path, _)| !present.contains(path.as_str()))
            .map(|(_, source)| source.id)
            .collect()
    };
    files.retain(|file| {
        known
            .get(&file.path)
            .is_none_or(|source| source.stamp != file.stamp)
    });
    if files.is_empty() && gone.is_empty() {
        return Ok(0);
    }
    let bytes = std::thread::scope(|scope| {
        // A thread of its own, so that the caller's keeps its priority.
        let indexing = scope.spawn(|| {
            lower_priority();
            index.words.write(|writer| {
                remove_sources(writer, &gone)?;
                Indexing::new(writer, projects).read_all(&files, cancel)
            })
        });
        let unexpected = |_| HistoryError::Io(std::io::Error::other("indexing stopped unexpectedly"));
        indexing.join().map_err(unexpected)?
    })?;
    if bytes >= MUCH {
        index.words.rest()?;
    }
    Ok(bytes)
}

/// Indexing is not urgent: requests come first.
fn lower_priority() {
    // On other systems this would slow down the whole program, and not only this thread.
    #[cfg(target_os = "linux")]
    if let Err(error) = rustix::process::nice(19) {
        tracing::debug!(%error, "can't lower the priority of indexing");
    }
}

/// Whether most rows of the full-text table belong to deleted messages.
fn is_mostly_stale(connection: &Connection) -> Result<bool> {
    let (numbered, live): (i64, i64) = connection.query_row(
        "SELECT (SELECT next FROM counter), (SELECT coalesce(sum(count), 0) FROM span)",
        [],
        |row| Ok((row.get(0)?, row.get(1)?)),
    )?;
    Ok(numbered > 2 * live + 100_000)
}

fn sources(connection: &Connection) -> Result<HashMap<String, Source>> {
    let mut statement =
        connection.prepare_cached("SELECT id, inode, size, modified, offset, tail, path FROM source")?;
    let rows = statement.query_map([], |row| Ok((row.get(6)?, source(row)?)))?;
    rows.collect::<rusqlite::Result<_>>().map_err(Into::into)
}

fn source(row: &Row<'_>) -> rusqlite::Result<Source> {
    let number = |column| row.get::<_, i64>(column).map(i64::cast_unsigned);
    Ok(Source {
        id: row.get(0)?,
        stamp: Stamp {
            inode: number(1)?,
            size: number(2)?,
            modified_ns: row.get(3)?,
        },
        offset: number(4)?,
        check: number(5)?,
    })
}

/// Removes deleted files. The words of their messages stay in the full-text table and are ignored.
fn remove_sources(connection: &mut Connection, gone: &[i64]) -> Result<()> {
    if gone.is_empty() {
        return Ok(());
    }
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    for id in gone {
        transaction.execute("DELETE FROM span WHERE source = ?", [id])?;
        transaction.execute("DELETE FROM source WHERE id = ?", [id])?;
    }
    transaction.commit()?;
    Ok(())
}

/// Uses numbers unchanged: they are already hashes.
#[derive(Default)]
struct IdentityHasher(u64);

impl Hasher for IdentityHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        self.0 = fingerprint(bytes);
    }

    fn write_u64(&mut self, number: u64) {
        self.0 = number;
    }
}

/// One round of indexing.
struct Indexing<'a> {
    connection: &'a Connection,
    projects: &'a Projects,
    /// The number of the next message. Never decreases: the full-text table still has the numbers of deleted messages.
    next: i64,
    text: Vec<u8>,
    /// The words of the current message, separated by blanks.
    words: String,
    /// The messages of the current file.
    places: Vec<Place>,
    /// Tool names by the ids of their calls.
    calls: HashMap<u64, String, BuildHasherDefault<IdentityHasher>>,
}

impl<'a> Indexing<'a> {
    fn new(connection: &'a Connection, projects: &'a Projects) -> Self {
        Self {
            connection,
            projects,
            next: 0,
            text: Vec::new(),
            words: String::new(),
            places: Vec::new(),
            calls: HashMap::default(),
        }
    }

    fn read_all(mut self, files: &[Transcript], cancel: &Cancel) -> Result<u64> {
        let mut buffer = Buffer::default();
        let mut total = 0;
        let mut files = files.iter().filter(|_| !cancel.is_set()).peekable();
        while files.peek().is_some() {
            // A transaction has whole files and all of their words. Only one transaction writes at a time: another
            // process may use the same index, so what it added is looked up here.
            let transaction = Transaction::new_unchecked(self.connection, TransactionBehavior::Immediate)?;
            self.next = transaction.query_row("SELECT next FROM counter", [], |row| row.get(0))?;
            let before = total;
            for file in files.by_ref() {
                match self.read(file, &mut buffer) {
                    Ok(bytes) => total += bytes,
                    Err(HistoryError::NotFound) => {}
                    Err(HistoryError::Io(error)) => {
                        tracing::warn!(%error, "a transcript could not be indexed");
                    }
                    Err(error) => return Err(error),
                }
                if total - before >= TRANSACTION {
                    break;
                }
            }
            transaction
                .prepare_cached("UPDATE counter SET next = ?")?
                .execute([self.next])?;
            transaction.commit()?;
        }
        Ok(total)
    }

    /// The indexed state of a transcript.
    fn known(&self, path: &str) -> Result<Option<Source>> {
        let known = self
            .connection
            .prepare_cached("SELECT id, inode, size, modified, offset, tail FROM source WHERE path = ?")?
            .query_row([path], source)
            .optional()?;
        Ok(known)
    }

    /// Reads the new part of a transcript. Returns its length.
    fn read(&mut self, transcript: &Transcript, buffer: &mut Buffer) -> Result<u64> {
        let (mut file, stamp) = self.projects.open(&transcript.path)?;
        let known = self.known(&transcript.path)?;
        let mut from = 0;
        if let Some(known) = &known {
            if known.stamp == stamp {
                return Ok(0);
            }
            let grown = known.stamp.inode == stamp.inode && known.offset <= stamp.size;
            if grown && crate::read::follow::check(&mut file, known.offset)? == known.check {
                from = known.offset;
            }
        }
        self.calls.clear();
        self.places.clear();
        let first = self.next;
        let start = if from == 0 {
            0
        } else {
            from.saturating_sub(LOOK_BACK)
        };
        let mut saved = Ok(());
        let end = read_lines(&mut file, start, buffer, |line| {
            let Line::Whole { offset, bytes } = line else {
                return true;
            };
            if let Some(record) = Record::read(bytes).filter(|record| record.kind.is_message()) {
                self.note_calls(&record);
                if offset >= from {
                    saved = self.message(transcript, offset, bytes, &record);
                }
            }
            saved.is_ok()
        })?
        .max(from);
        saved?;
        let check = crate::read::follow::check(&mut file, end)?;
        let id = save_source(self.connection, &transcript.path, stamp, end, check)?;
        if known.is_some() && from == 0 {
            self.connection
                .execute("DELETE FROM span WHERE source = ?", [id])?;
        }
        if !self.places.is_empty() {
            let newest = self.newest(id, stamp)?;
            self.connection
                .prepare_cached(
                    "INSERT INTO span (first, count, source, newest, messages) VALUES (?, ?, ?, ?, ?)",
                )?
                .execute(params![
                    first,
                    self.next - first,
                    id,
                    newest,
                    encode(&self.places)
                ])?;
        }
        Ok(end - from)
    }

    /// The time of the newest of the current messages. Later lines of a file are never older.
    fn newest(&self, source: i64, stamp: Stamp) -> Result<i64> {
        let before: Option<i64> = self
            .connection
            .prepare_cached("SELECT max(newest) FROM span WHERE source = ?")?
            .query_row([source], |row| row.get(0))?;
        let said = self
            .places
            .iter()
            .map(|place| place.time)
            .filter(|time| *time != 0);
        let newest = said.chain(before).max();
        Ok(newest.unwrap_or(stamp.modified_ns / 1_000_000))
    }

    fn note_calls(&mut self, record: &Record<'_>) {
        let calls = &mut self.calls;
        text::tool_calls(record, |id, name| {
            calls.insert(fingerprint(id), String::from_utf8_lossy(name).to_lowercase());
        });
    }

    /// Adds a message to the full-text table.
    fn message(
        &mut self,
        transcript: &Transcript,
        offset: u64,
        line: &[u8],
        record: &Record<'_>,
    ) -> Result<()> {
        let Ok(length) = u32::try_from(line.len()) else {
            return Ok(());
        };
        let text_end = record.content.map_or(0, |content| {
            let after = content.0.as_ptr_range().end as usize - line.as_ptr() as usize;
            u32::try_from(after).unwrap_or(length)
        });
        self.text.clear();
        text::searchable(record, &mut self.text);
        let is_elsewhere = memchr::memmem::find(&self.text, b"<persisted-output>").is_some();
        if is_elsewhere {
            append_persisted(
                self.projects,
                &super::find::owner(&transcript.path),
                &mut self.text,
            );
        }
        let Self {
            connection,
            next,
            text,
            words,
            calls,
            ..
        } = self;
        words.clear();
        let mut push = |word: &str| {
            words.push_str(word);
            words.push(' ');
        };
        text::words(&String::from_utf8_lossy(text), &mut push);
        text::tool_calls(record, |_, name| {
            push(&text::tool_word(&String::from_utf8_lossy(name)));
        });
        text::tool_results(record, |id| {
            if let Some(name) = calls.get(&fingerprint(id)) {
                push(&text::tool_word(name));
            }
        });
        if !words.is_empty() {
            connection
                .prepare_cached("INSERT INTO message (rowid, words) VALUES (?, ?)")?
                .execute(params![*next, words.as_str()])?;
        }
        let time = record
            .timestamp
            .and_then(Raw::escaped)
            .and_then(millis)
            .unwrap_or(0);
        self.places.push(Place {
            offset,
            length,
            text_end,
            is_elsewhere,
            time,
        });
        self.next += 1;
        Ok(())
    }
}

/// Appends the file of a large result.
pub(super) fn append_persisted(projects: &Projects, transcript: &Transcript, text: &mut Vec<u8>) {
    let preview = String::from_utf8_lossy(text).into_owned();
    let Some(name) = text::persisted_name(&preview) else {
        return;
    };
    if let Ok(file) = projects.open_tool_result(transcript, name)
        && let Err(error) = file.take(MAX_PERSISTED).read_to_end(text)
    {
        tracing::debug!(%error, "a large tool result could not be read");
    }
}

fn save_source(connection: &Connection, path: &str, stamp: Stamp, offset: u64, check: u64) -> Result<i64> {
    let numbers = params![
        path,
        stamp.inode.cast_signed(),
        stamp.size.cast_signed(),
        stamp.modified_ns,
        offset.cast_signed(),
        check.cast_signed()
    ];
    let id = connection
        .prepare_cached(
            "INSERT INTO source (path, inode, size, modified, offset, tail) VALUES (?1, ?2, ?3, ?4, ?5, ?6)
             ON CONFLICT (path) DO UPDATE SET inode = ?2, size = ?3, modified = ?4, offset = ?5, tail = ?6 RETURNING id",
        )?
        .query_row(numbers, |row| row.get(0))
        .optional()?;
    id.ok_or_else(|| HistoryError::from(rusqlite::Error::QueryReturnedNoRows))
}

/// The positions of a span, each relative to the previous one.
fn encode(places: &[Place]) -> Vec<u8> {
    let mut out = Vec::with_capacity(places.len() * 8);
    let (mut offset, mut time) = (0u64, 0i64);
    for place in places {
        varint::push(&mut out, place.offset - offset);
        varint::push(&mut out, u64::from(place.length));
        varint::push(
            &mut out,
            u64::from(place.text_end) << 1 | u64::from(place.is_elsewhere),
        );
        let step = place.time - time;
        varint::push(&mut out, (step << 1 ^ step >> 63).cast_unsigned());
        offset = place.offset;
        time = place.time;
    }
    out
}

pub(super) fn decode(bytes: &[u8]) -> Option<Vec<Place>> {
    let mut at = 0;
    let mut places = Vec::new();
    let (mut offset, mut time) = (0u64, 0i64);
    while at < bytes.len() {
        offset = offset.checked_add(varint::take(bytes, &mut at)?)?;
        let length = u32::try_from(varint::take(bytes, &mut at)?).ok()?;
        let text = varint::take(bytes, &mut at)?;
        let step = varint::take(bytes, &mut at)?;
        time = time.checked_add((step >> 1).cast_signed() ^ -(step & 1).cast_signed())?;
        places.push(Place {
            offset,
            length,
            text_end: u32::try_from(text >> 1).ok()?,
            is_elsewhere: text & 1 == 1,
            time,
        });
    }
    Some(places)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_survive_the_index() {
        let places = [
            Place {
                offset: 0,
                length: 10,
                text_end: 0,
                is_elsewhere: false,
                time: 1_794_780_860_000,
            },
            Place {
                offset: 11,
                length: 70_000,
                text_end: 69_000,
                is_elsewhere: true,
                time: 1_794_780_850_000,
            },
            Place {
                offset: 5_000_000_000,
                length: 1,
                text_end: u32::MAX,
                is_elsewhere: false,
                time: 0,
            },
        ];
        assert_eq!(decode(&encode(&places)).unwrap(), places);
        assert_eq!(decode(&[255; 30]), None);
    }
}
