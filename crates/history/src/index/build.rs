//! Brings the words of all transcripts into the index.
//!
//! One thread reads and cuts into words, another writes. Each message becomes one row of its distinct words, without
//! positions and without the text itself, which stays where it is: in the transcript.

use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasherDefault, Hasher};
use std::io::Read as _;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use rusqlite::{Connection, OptionalExtension, params};

use crate::error::{HistoryError, Result};
use crate::follow::{Stamp, fingerprint};
use crate::json::Raw;
use crate::lines::{Buffer, Line, read_lines};
use crate::place::{Projects, Transcript};
use crate::record::{Record, millis};
use crate::text;

use super::Index;

/// Of a large result that lies in a file of its own, this much is made searchable.
pub(crate) const MAX_PERSISTED: u64 = 2 * 1024 * 1024;
/// A batch goes to the writer when it has this many bytes of words. Two may wait: the bound on memory.
const BATCH: usize = 2 * 1024 * 1024;
/// How far back to look for the calls that the first new results answer.
const LOOK_BACK: u64 = 512 * 1024;
/// Rows of one transaction; the words table sorts what it has in memory when one ends.
const COMMIT_BYTES: usize = 96 * 1024 * 1024;

/// Asks a running build to stop at the next file.
#[derive(Debug, Default)]
pub(crate) struct Cancel(AtomicBool);

impl Cancel {
    pub(crate) fn cancel(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// Where one message lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) offset: u64,
    pub(super) length: u32,
    pub(super) time: i64,
}

/// What the reading thread hands to the writing one.
enum Work {
    /// Words of messages of the file that the next `Done` names.
    Messages {
        places: Vec<Place>,
        words: String,
        ends: Vec<u32>,
    },
    /// A file has been read up to `offset`.
    Done {
        path: String,
        stamp: Stamp,
        offset: u64,
        check: u64,
        afresh: bool,
    },
}

#[derive(Clone, Copy)]
struct Source {
    id: i64,
    stamp: Stamp,
    offset: u64,
    check: u64,
}

/// Indexes whatever of `files` is new, oldest first. Returns the number of bytes read.
pub(crate) fn build(
    index: &Index,
    projects: &Projects,
    mut files: Vec<Transcript>,
    cancel: &Cancel,
) -> Result<u64> {
    if is_mostly_waste(&index.words.writer())? {
        index.words.renew()?;
    }
    let known = sources(&index.words.writer())?;
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
    files.sort_by_key(|file| file.stamp.modified_ns);
    if files.is_empty() && gone.is_empty() {
        return Ok(0);
    }
    let (sender, receiver) = sync_channel(2);
    let unexpected = |_| HistoryError::Io(std::io::Error::other("indexing stopped unexpectedly"));
    std::thread::scope(|scope| {
        // Threads of their own, both: the caller's keeps its priority.
        let writing = scope.spawn(|| {
            step_back();
            write(&mut index.words.writer(), &known, &gone, receiver)
        });
        let reading = scope.spawn(|| {
            step_back();
            read_files(projects, &files, &known, sender, cancel)
        });
        let read = reading.join().map_err(unexpected)?;
        writing.join().map_err(unexpected)??;
        Ok(read)
    })
}

/// Indexing is never urgent: what people wait for comes first.
fn step_back() {
    // Elsewhere this would slow the whole program down, and not only this thread.
    #[cfg(target_os = "linux")]
    if let Err(error) = rustix::process::nice(10) {
        tracing::debug!(%error, "indexing keeps the priority of everything else");
    }
}

/// Whether most of what the table of words has is about messages that are gone.
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

fn read_files(
    projects: &Projects,
    files: &[Transcript],
    known: &HashMap<String, Source>,
    sender: SyncSender<Work>,
    cancel: &Cancel,
) -> u64 {
    let mut reader = Reader::default();
    let mut total = 0;
    for file in files {
        if cancel.is_set() {
            break;
        }
        match reader.read(projects, file, known.get(&file.path), &sender) {
            Ok(Some(bytes)) => total += bytes,
            // The writer has given up, and says why itself.
            Ok(None) => break,
            Err(HistoryError::NotFound) => {}
            Err(error) => tracing::warn!(%error, "a transcript could not be indexed"),
        }
    }
    total
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

type Seen = HashSet<u64, BuildHasherDefault<Same>>;

#[derive(Default)]
struct Reader {
    buffer: Buffer,
    text: Vec<u8>,
    seen: Seen,
    places: Vec<Place>,
    words: String,
    ends: Vec<u32>,
    /// Tools by the ids of their calls.
    calls: HashMap<u64, String, BuildHasherDefault<Same>>,
}

impl Reader {
    /// `None` if nobody listens any more.
    fn read(
        &mut self,
        projects: &Projects,
        transcript: &Transcript,
        known: Option<&Source>,
        sender: &SyncSender<Work>,
    ) -> Result<Option<u64>> {
        let (mut file, stamp) = projects.open(&transcript.path)?;
        let mut from = 0;
        if let Some(known) = known {
            let grown = known.stamp.inode == stamp.inode && known.offset <= stamp.size;
            if grown && crate::follow::check(&mut file, known.offset)? == known.check {
                from = known.offset;
            }
        }
        self.calls.clear();
        let start = if from == 0 {
            0
        } else {
            from.saturating_sub(LOOK_BACK)
        };
        let mut buffer = std::mem::take(&mut self.buffer);
        let mut listening = true;
        let result = read_lines(&mut file, start, &mut buffer, |line| {
            let Line::Whole { offset, bytes } = line else {
                return true;
            };
            if let Some(record) = Record::read(bytes).filter(|record| record.kind.is_message()) {
                self.note_calls(&record);
                if offset >= from {
                    self.message(projects, transcript, offset, bytes, &record);
                    if self.words.len() >= BATCH {
                        listening = self.hand_over(sender);
                    }
                }
            }
            listening
        });
        self.buffer = buffer;
        let end = result?.max(from);
        let check = crate::follow::check(&mut file, end)?;
        let afresh = known.is_some() && from == 0;
        let done = Work::Done {
            path: transcript.path.clone(),
            stamp,
            offset: end,
            check,
            afresh,
        };
        if !listening || !self.hand_over(sender) || sender.send(done).is_err() {
            return Ok(None);
        }
        Ok(Some(end - from))
    }

    fn hand_over(&mut self, sender: &SyncSender<Work>) -> bool {
        if self.places.is_empty() {
            return true;
        }
        let capacity = self.words.capacity();
        let words = std::mem::replace(&mut self.words, String::with_capacity(capacity));
        let places = std::mem::take(&mut self.places);
        let ends = std::mem::take(&mut self.ends);
        sender.send(Work::Messages { places, words, ends }).is_ok()
    }

    fn note_calls(&mut self, record: &Record<'_>) {
        let calls = &mut self.calls;
        text::tool_calls(record, |id, name| {
            calls.insert(fingerprint(id), String::from_utf8_lossy(name).to_lowercase());
        });
    }

    fn message(
        &mut self,
        projects: &Projects,
        transcript: &Transcript,
        offset: u64,
        line: &[u8],
        record: &Record<'_>,
    ) {
        self.text.clear();
        text::searchable(record, &mut self.text);
        if memchr::memmem::find(&self.text, b"<persisted-output>").is_some() {
            append_persisted(projects, &super::owner(&transcript.path), &mut self.text);
        }
        self.seen.clear();
        let before = self.words.len();
        let Self {
            seen,
            words,
            text,
            calls,
            ..
        } = self;
        let text = String::from_utf8_lossy(text);
        text::words(&text, |word| {
            if seen.insert(word_hash(word.as_bytes())) {
                words.push_str(word);
                words.push(' ');
            }
        });
        let mut tool = |name: &str| {
            words.push(text::TOOL_MARK);
            words.extend(name.chars().filter(|letter| letter.is_alphanumeric()));
            words.push(' ');
        };
        text::tool_calls(record, |_, name| {
            tool(&String::from_utf8_lossy(name).to_lowercase());
        });
        text::tool_results(record, |id| {
            if let Some(name) = calls.get(&fingerprint(id)) {
                tool(name);
            }
        });
        if self.words.len() == before {
            return;
        }
        let (Ok(end), Ok(length)) = (u32::try_from(self.words.len()), u32::try_from(line.len())) else {
            return;
        };
        self.ends.push(end);
        let time = record
            .timestamp
            .and_then(Raw::escaped)
            .and_then(millis)
            .unwrap_or(0);
        self.places.push(Place { offset, length, time });
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

/// Multiplies eight bytes at a time: words are short, and there are a hundred million of them.
fn word_hash(word: &[u8]) -> u64 {
    let mut hash = word.len() as u64;
    let mut chunks = word.chunks_exact(8);
    for chunk in &mut chunks {
        let number = chunk
            .iter()
            .rev()
            .fold(0u64, |number, byte| number << 8 | u64::from(*byte));
        hash = (hash.rotate_left(5) ^ number).wrapping_mul(0x517c_c1b7_2722_0a95);
    }
    let number = chunks
        .remainder()
        .iter()
        .rev()
        .fold(0u64, |number, byte| number << 8 | u64::from(*byte));
    hash = (hash.rotate_left(5) ^ number).wrapping_mul(0x517c_c1b7_2722_0a95);
    hash ^ hash >> 29
}

fn write(
    connection: &mut Connection,
    known: &HashMap<String, Source>,
    gone: &[i64],
    receiver: Receiver<Work>,
) -> Result<()> {
    // Never goes back: the number of a message that is gone still stands in the table of words.
    let mut next: i64 = connection.query_row("SELECT next FROM counter", [], |row| row.get(0))?;
    let mut transaction = connection.transaction()?;
    for id in gone {
        transaction.execute("DELETE FROM span WHERE source = ?", [id])?;
        transaction.execute("DELETE FROM source WHERE id = ?", [id])?;
    }
    // Spans of the file at hand: their source is not known before its end.
    let mut spans: Vec<(i64, Vec<Place>)> = Vec::new();
    let mut bytes = 0;
    for work in receiver {
        match work {
            Work::Messages { places, words, ends } => {
                bytes += words.len();
                let first = next;
                {
                    let mut insert =
                        transaction.prepare_cached("INSERT INTO words (rowid, list) VALUES (?, ?)")?;
                    let mut start = 0;
                    for end in ends {
                        let end = end as usize;
                        insert.execute(params![next, &words[start..end]])?;
                        next += 1;
                        start = end;
                    }
                }
                spans.push((first, places));
            }
            Work::Done {
                path,
                stamp,
                offset,
                check,
                afresh,
            } => {
                if let Some(source) = known.get(&path).filter(|_| afresh) {
                    transaction.execute("DELETE FROM span WHERE source = ?", [source.id])?;
                }
                let id = save_source(&transaction, &path, stamp, offset, check)?;
                let mut insert = transaction.prepare_cached(
                    "INSERT INTO span (first, count, source, messages) VALUES (?, ?, ?, ?)",
                )?;
                for (first, places) in spans.drain(..) {
                    insert.execute(params![
                        first,
                        i64::try_from(places.len()).unwrap_or(i64::MAX),
                        id,
                        encode(&places)
                    ])?;
                }
                drop(insert);
                transaction
                    .prepare_cached("UPDATE counter SET next = ?")?
                    .execute([next])?;
                if bytes >= COMMIT_BYTES {
                    transaction.commit()?;
                    transaction = connection.transaction()?;
                    bytes = 0;
                }
            }
        }
    }
    transaction.commit()?;
    Ok(())
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
        push_varint(&mut out, place.offset - offset);
        push_varint(&mut out, u64::from(place.length));
        let step = place.time - time;
        push_varint(&mut out, (step << 1 ^ step >> 63).cast_unsigned());
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
        offset = offset.checked_add(take_varint(bytes, &mut at)?)?;
        let length = u32::try_from(take_varint(bytes, &mut at)?).ok()?;
        let step = take_varint(bytes, &mut at)?;
        time = time.checked_add((step >> 1).cast_signed() ^ -(step & 1).cast_signed())?;
        places.push(Place { offset, length, time });
    }
    Some(places)
}

fn push_varint(out: &mut Vec<u8>, mut number: u64) {
    loop {
        let [low, ..] = number.to_le_bytes();
        number >>= 7;
        if number == 0 {
            out.push(low & 127);
            return;
        }
        out.push(low | 128);
    }
}

fn take_varint(bytes: &[u8], at: &mut usize) -> Option<u64> {
    let mut number = 0u64;
    for shift in (0..64).step_by(7) {
        let byte = *bytes.get(*at)?;
        *at += 1;
        number |= u64::from(byte & 127) << shift;
        if byte < 128 {
            return Some(number);
        }
    }
    None
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
                time: 1_794_780_860_000,
            },
            Place {
                offset: 11,
                length: 70_000,
                time: 1_794_780_850_000,
            },
            Place {
                offset: 5_000_000_000,
                length: 1,
                time: 0,
            },
        ];
        assert_eq!(decode(&encode(&places)).unwrap(), places);
        assert_eq!(decode(&[255; 30]), None);
    }
}
