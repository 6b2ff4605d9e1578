//! Brings the words of all transcripts into the index.
//!
//! Transcripts are read one after another, the one that was used last at the end, and every message gets a number. Which
//! numbers have which words is gathered in memory and written when there is much of it. The text itself stays where it
//! is: in the transcript.

use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasherDefault, Hasher};
use std::io::Read as _;
use std::sync::atomic::{AtomicBool, Ordering};

use rusqlite::{Connection, OptionalExtension, params};

use crate::error::{HistoryError, Result};
use crate::read::follow::{Stamp, fingerprint};
use crate::read::json::Raw;
use crate::read::lines::{Buffer, Line, read_lines};
use crate::read::place::{Projects, Transcript};
use crate::read::record::{Record, millis};
use crate::search::text;

use super::gather::Gathered;
use super::{runs, varint};
use crate::index::Index;

/// Of a large result that lies in a file of its own, this much is made searchable.
pub(crate) const MAX_PERSISTED: u64 = 2 * 1024 * 1024;
/// Words are written when they take this much memory.
const ENOUGH: usize = 32 * 1024 * 1024;
/// After so many bytes the memory that indexing took is given back.
const MUCH: u64 = 16 * 1024 * 1024;
/// How far back to look for the calls that the first new results answer.
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

/// Where one message lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) offset: u64,
    pub(super) length: u32,
    /// Everything that can be searched for stands before this in its line.
    pub(super) text_end: u32,
    /// The whole of a large result lies in another file.
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

/// Indexes the new parts of `files`, in their order. Returns the number of bytes read.
pub(crate) fn build(
    index: &Index,
    projects: &Projects,
    mut files: Vec<Transcript>,
    cancel: &Cancel,
) -> Result<u64> {
    if index.words.write(|writer| is_mostly_waste(writer))? {
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
        // A thread of its own: the caller's keeps its priority.
        let indexing = scope.spawn(|| {
            step_back();
            index.words.write(|writer| {
                take_out(writer, &gone)?;
                Indexing::begin(writer, projects)?.read_all(&files, &known, cancel)
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

/// Indexing is never urgent: requests come first.
fn step_back() {
    // Elsewhere this would slow the whole program down, and not only this thread.
    #[cfg(target_os = "linux")]
    if let Err(error) = rustix::process::nice(19) {
        tracing::debug!(%error, "indexing keeps the priority of everything else");
    }
}

/// Whether most entries of the table of words are about messages that are gone.
fn is_mostly_waste(connection: &Connection) -> Result<bool> {
    let (numbered, live): (i64, i64) = connection.query_row(
        "SELECT (SELECT next FROM counter), (SELECT coalesce(sum(count), 0) FROM span)",
        [],
        |row| Ok((row.get(0)?, row.get(1)?)),
    )?;
    Ok(numbered > 2 * live + 100_000)
}

fn sources(connection: &Connection) -> Result<HashMap<String, Source>> {
    let mut statement =
        connection.prepare_cached("SELECT path, id, inode, size, modified, offset, tail FROM source")?;
    let rows = statement.query_map([], |row| {
        let number = |column| row.get::<_, i64>(column).map(i64::cast_unsigned);
        Ok((
            row.get(0)?,
            Source {
                id: row.get(1)?,
                stamp: Stamp {
                    inode: number(2)?,
                    size: number(3)?,
                    modified_ns: row.get(4)?,
                },
                offset: number(5)?,
                check: number(6)?,
            },
        ))
    })?;
    rows.collect::<rusqlite::Result<_>>().map_err(Into::into)
}

/// Removes files that are gone. Their numbers stay in the runs, without a meaning.
fn take_out(connection: &mut Connection, gone: &[i64]) -> Result<()> {
    let transaction = connection.transaction()?;
    for id in gone {
        transaction.execute("DELETE FROM span WHERE source = ?", [id])?;
        transaction.execute("DELETE FROM source WHERE id = ?", [id])?;
    }
    transaction.commit()?;
    Ok(())
}

/// Numbers as their own hash: they are hashes already.
#[derive(Default)]
struct Same(u64);

impl Hasher for Same {
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
    gathered: Gathered,
    /// The number of the next message. Never goes back: the number of a message that is gone still stands in the runs.
    next: i64,
    text: Vec<u8>,
    /// Messages of the file at hand.
    places: Vec<Place>,
    /// Tools by the ids of their calls.
    calls: HashMap<u64, String, BuildHasherDefault<Same>>,
}

impl<'a> Indexing<'a> {
    fn begin(connection: &'a Connection, projects: &'a Projects) -> Result<Self> {
        Ok(Self {
            next: connection.query_row("SELECT next FROM counter", [], |row| row.get(0))?,
            connection,
            projects,
            gathered: Gathered::default(),
            text: Vec::new(),
            places: Vec::new(),
            calls: HashMap::default(),
        })
    }

    fn read_all(
        mut self,
        files: &[Transcript],
        known: &HashMap<String, Source>,
        cancel: &Cancel,
    ) -> Result<u64> {
        let mut buffer = Buffer::default();
        let mut total = 0;
        let mut files = files.iter().filter(|_| !cancel.is_set()).peekable();
        while files.peek().is_some() {
            // A transaction has whole files, and all words of them.
            let transaction = self.connection.unchecked_transaction()?;
            for file in files.by_ref() {
                match self.read(file, known.get(&file.path), &mut buffer) {
                    Ok(bytes) => total += bytes,
                    Err(HistoryError::NotFound) => {}
                    Err(HistoryError::Io(error)) => {
                        tracing::warn!(%error, "a transcript could not be indexed");
                    }
                    Err(error) => return Err(error),
                }
                if self.gathered.size() >= ENOUGH {
                    break;
                }
            }
            runs::save(self.connection, &mut self.gathered)?;
            self.connection
                .prepare_cached("UPDATE counter SET next = ?")?
                .execute([self.next])?;
            transaction.commit()?;
        }
        Ok(total)
    }

    /// Reads what is new in a transcript. Returns how much that was.
    fn read(&mut self, transcript: &Transcript, known: Option<&Source>, buffer: &mut Buffer) -> Result<u64> {
        let (mut file, stamp) = self.projects.open(&transcript.path)?;
        let mut from = 0;
        if let Some(known) = known {
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
                    self.message(transcript, offset, bytes, &record);
                    if self.gathered.size() >= 2 * ENOUGH {
                        saved = runs::save(self.connection, &mut self.gathered);
                    }
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

    /// When the newest of the messages at hand was said. What stands later in a file is never older.
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

    fn message(&mut self, transcript: &Transcript, offset: u64, line: &[u8], record: &Record<'_>) {
        let Ok(length) = u32::try_from(line.len()) else {
            return;
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
            gathered,
            next,
            text,
            calls,
            ..
        } = self;
        gathered.text(*next, &String::from_utf8_lossy(text));
        let mut tool = |name: &str| {
            gathered.note(*next, text::tool_word(name).as_bytes());
        };
        text::tool_calls(record, |_, name| tool(&String::from_utf8_lossy(name)));
        text::tool_results(record, |id| {
            if let Some(name) = calls.get(&fingerprint(id)) {
                tool(name);
            }
        });
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
    }
}

/// Appends the text of the file that holds the whole of a large result.
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

/// Places of a span, each relative to the one before it.
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
