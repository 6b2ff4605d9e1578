//! Looks words up in the index and reads the messages that have them.

use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use memchr::memmem;
use rayon::prelude::*;
use rusqlite::{Connection, params};

use crate::error::Result;
use crate::json::Raw;
use crate::place::{Projects, Transcript};
use crate::record::{Kind, Record};
use crate::text::{self, Term};

use super::build::{Place, append_persisted, decode};
use super::proof::Proof;
use super::{Index, runs};

/// Matches beyond this are not counted: nobody pages that far, and counting them all would take longer than finding them.
const MAX_COUNT: usize = 10_000;
/// Time for counting what is not on the page, and for reading messages whose words match but may not be what was asked for.
const COUNT_TIME: Duration = Duration::from_millis(10);
/// Time for filling the page when hardly any message whose words match is what was asked for.
const PAGE_TIME: Duration = Duration::from_millis(200);

/// Messages that are read at once.
const TOGETHER: usize = 128;

/// What to look for.
pub(crate) struct Wanted<'a> {
    pub(crate) terms: &'a [Term],
    /// Only messages that call this tool, or return from it.
    pub(crate) tool: Option<&'a str>,
    /// Milliseconds, from and to, the end left out.
    pub(crate) times: std::ops::Range<i64>,
    pub(crate) offset: usize,
    pub(crate) limit: usize,
}

/// A message that was found.
pub(crate) struct Hit {
    /// Its transcript, relative to the folder of projects.
    pub(crate) path: String,
    pub(crate) uuid: String,
    pub(crate) role: &'static str,
    pub(crate) timestamp: String,
    pub(crate) is_tool_result: bool,
    pub(crate) text: String,
}

pub(crate) struct Found {
    pub(crate) hits: Vec<Hit>,
    pub(crate) total: usize,
    /// Whether `total` is the number of all matches.
    pub(crate) is_exact: bool,
}

/// Finds messages, newest first, in the transcripts that `admits` lets pass.
pub(crate) fn find(
    index: &Index,
    projects: &Projects,
    wanted: &Wanted<'_>,
    mut admits: impl FnMut(&str) -> bool,
) -> Result<Found> {
    index.words.read(|connection| {
        let spans = Spans::load(connection, &mut admits)?;
        let mut search = Search {
            connection,
            spans,
            wanted,
            files: Files {
                projects,
                open: HashMap::new(),
            },
            proof: Proof::of(wanted.terms),
            started: Instant::now(),
            found: Found {
                hits: Vec::new(),
                total: 0,
                is_exact: true,
            },
        };
        let words = words(wanted);
        'runs: for run in runs::all(connection)? {
            for numbers in runs::with_all(connection, &run, &words)?.chunks(TOGETHER) {
                if !search.candidates(numbers)? {
                    break 'runs;
                }
            }
        }
        Ok(search.found)
    })
}

/// The words that a message must have.
fn words(wanted: &Wanted<'_>) -> Vec<runs::Wanted> {
    let mut words = Vec::new();
    for term in wanted.terms {
        for (position, word) in term.words.iter().enumerate() {
            words.push(runs::Wanted {
                word: word.as_bytes().to_vec(),
                is_open: term.open_end && position + 1 == term.words.len(),
            });
        }
    }
    words.extend(wanted.tool.map(|tool| runs::Wanted {
        word: text::tool_word(tool).into_bytes(),
        is_open: false,
    }));
    words
}

struct Search<'a> {
    connection: &'a Connection,
    spans: Spans,
    wanted: &'a Wanted<'a>,
    files: Files<'a>,
    proof: Proof,
    started: Instant,
    found: Found,
}

/// A message that has the words.
struct Candidate {
    path: Arc<str>,
    file: Arc<File>,
    place: Place,
}

impl Search<'_> {
    /// Takes these messages in, as far as they are wanted. False when enough have been seen.
    fn candidates(&mut self, numbers: &[i64]) -> Result<bool> {
        if self.proof.is_trivial() {
            return self.counted(numbers);
        }
        let mut candidates = Vec::with_capacity(numbers.len());
        for number in numbers {
            candidates.extend(self.candidate(*number)?);
        }
        // Most are not what was asked for, and each has to be read to see that: on all cores at once.
        let proof = &self.proof;
        let projects = self.files.projects;
        let hits: Vec<Hit> = candidates
            .into_par_iter()
            .map_init(Vec::new, |line, candidate| {
                read(&candidate, line, proof, projects)
            })
            .flatten_iter()
            .collect();
        for hit in hits {
            self.take(|_| Ok(Some(hit)))?;
        }
        let time = if self.is_full() { COUNT_TIME } else { PAGE_TIME };
        self.found.is_exact = self.started.elapsed() < time && self.found.total < MAX_COUNT;
        Ok(self.found.is_exact)
    }

    /// As they are: their words prove that they are what was asked for.
    fn counted(&mut self, numbers: &[i64]) -> Result<bool> {
        for number in numbers {
            let Some(span) = self.spans.of(*number) else {
                continue;
            };
            if self.is_timed() && self.place(span, *number)?.is_none() {
                continue;
            }
            self.take(|search| {
                let candidate = search.candidate(*number)?;
                let projects = search.files.projects;
                Ok(
                    candidate
                        .and_then(|candidate| read(&candidate, &mut Vec::new(), &search.proof, projects)),
                )
            })?;
            let is_late = self.found.total.is_multiple_of(64) && self.started.elapsed() >= COUNT_TIME;
            if self.is_full() && (self.found.total >= MAX_COUNT || is_late) {
                self.found.is_exact = false;
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Counts a match, and keeps it if it is on the page.
    fn take(&mut self, hit: impl FnOnce(&mut Self) -> Result<Option<Hit>>) -> Result<()> {
        if self.found.total >= self.wanted.offset && self.found.hits.len() < self.wanted.limit {
            let Some(hit) = hit(self)? else { return Ok(()) };
            self.found.hits.push(hit);
        }
        self.found.total += 1;
        Ok(())
    }

    fn is_full(&self) -> bool {
        self.found.total >= self.wanted.offset + self.wanted.limit
    }

    fn is_timed(&self) -> bool {
        self.wanted.times != (i64::MIN..i64::MAX)
    }

    /// Where a message lies; `None` if that is unknown, or it was not said in the wanted time.
    fn place(&mut self, span: usize, number: i64) -> Result<Option<Place>> {
        let place = self.spans.place(self.connection, span, number)?;
        Ok(place.filter(|place| self.wanted.times.contains(&place.time)))
    }

    fn candidate(&mut self, number: i64) -> Result<Option<Candidate>> {
        let Some(span) = self.spans.of(number) else {
            return Ok(None);
        };
        let Some(place) = self.place(span, number)? else {
            return Ok(None);
        };
        let path = Arc::clone(&self.spans.list[span].path);
        let file = self.files.open(&path);
        Ok(file.map(|file| Candidate { path, file, place }))
    }
}

/// Reads a message. `None` if its file has something else there by now, or it is not what was asked for.
fn read(candidate: &Candidate, line: &mut Vec<u8>, proof: &Proof, projects: &Projects) -> Option<Hit> {
    let Candidate { path, file, place } = candidate;
    line.resize(place.length as usize, 0);
    read_exact_at(file, line, place.offset).ok()?;
    // The whole of a large result lies in another file.
    if !proof.may_be_in(line) && memmem::find(line, b"<persisted-output>").is_none() {
        return None;
    }
    let record = Record::read(line)?;
    let mut text = Vec::new();
    text::searchable(&record, &mut text);
    if memmem::find(&text, b"<persisted-output>").is_some() {
        append_persisted(projects, &owner(path), &mut text);
    }
    let text = String::from_utf8_lossy(&text).into_owned();
    if !proof.is_in(&text) {
        return None;
    }
    let mut is_tool_result = false;
    text::tool_results(&record, |_| is_tool_result = true);
    let string = |value: Option<Raw<'_>>| value.and_then(Raw::text).unwrap_or_default().into_owned();
    Some(Hit {
        path: path.to_string(),
        uuid: string(record.uuid),
        role: if record.kind == Kind::User {
            "user"
        } else {
            "assistant"
        },
        timestamp: string(record.timestamp),
        is_tool_result,
        text,
    })
}

#[cfg(unix)]
fn read_exact_at(file: &File, bytes: &mut [u8], offset: u64) -> io::Result<()> {
    std::os::unix::fs::FileExt::read_exact_at(file, bytes, offset)
}

#[cfg(windows)]
fn read_exact_at(file: &File, mut bytes: &mut [u8], mut offset: u64) -> io::Result<()> {
    while !bytes.is_empty() {
        let count = std::os::windows::fs::FileExt::seek_read(file, bytes, offset)?;
        if count == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        bytes = &mut bytes[count..];
        offset += count as u64;
    }
    Ok(())
}

/// The files that results come from, kept open while they do.
struct Files<'a> {
    projects: &'a Projects,
    open: HashMap<Arc<str>, Option<Arc<File>>>,
}

impl Files<'_> {
    fn open(&mut self, path: &Arc<str>) -> Option<Arc<File>> {
        if self.open.len() > 64 {
            self.open.clear();
        }
        let projects = self.projects;
        let file = self
            .open
            .entry(Arc::clone(path))
            .or_insert_with(|| projects.open(path).ok().map(|(file, _)| Arc::new(file)));
        file.clone()
    }
}

struct Span {
    first: i64,
    count: i64,
    path: Arc<str>,
}

struct Spans {
    list: Vec<Span>,
    /// The places of the span looked at last: neighbours are asked for one after another.
    open: Option<(usize, Vec<Place>)>,
}

impl Spans {
    fn load(connection: &Connection, admits: &mut impl FnMut(&str) -> bool) -> Result<Self> {
        let mut paths: HashMap<i64, Option<Arc<str>>> = HashMap::new();
        let mut statement = connection.prepare_cached("SELECT id, path FROM source")?;
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            let path: String = row.get(1)?;
            let admitted = admits(&path);
            paths.insert(row.get(0)?, admitted.then(|| path.into()));
        }
        let mut statement =
            connection.prepare_cached("SELECT first, count, source FROM span ORDER BY first")?;
        let mut rows = statement.query([])?;
        let mut list = Vec::new();
        while let Some(row) = rows.next()? {
            let source: i64 = row.get(2)?;
            if let Some(Some(path)) = paths.get(&source) {
                list.push(Span {
                    first: row.get(0)?,
                    count: row.get(1)?,
                    path: Arc::clone(path),
                });
            }
        }
        Ok(Self { list, open: None })
    }

    fn of(&self, number: i64) -> Option<usize> {
        let after = self.list.partition_point(|span| span.first <= number);
        let index = after.checked_sub(1)?;
        (number < self.list[index].first + self.list[index].count).then_some(index)
    }

    fn place(&mut self, connection: &Connection, span: usize, number: i64) -> Result<Option<Place>> {
        let first = self.list[span].first;
        if self.open.as_ref().is_none_or(|(open, _)| *open != span) {
            let bytes: Vec<u8> = connection
                .prepare_cached("SELECT messages FROM span WHERE first = ?")?
                .query_row(params![first], |row| row.get(0))?;
            self.open = Some((span, decode(&bytes).unwrap_or_default()));
        }
        let position = usize::try_from(number - first).unwrap_or(usize::MAX);
        Ok(self
            .open
            .as_ref()
            .and_then(|(_, places)| places.get(position).copied()))
    }
}

/// The session that a transcript, its own or a subagent's, belongs to.
pub(crate) fn owner(path: &str) -> Transcript {
    let mut parts = path.split('/');
    let project = parts.next().unwrap_or_default();
    let stem = parts.next().unwrap_or_default().trim_end_matches(".jsonl");
    Transcript {
        path: format!("{project}/{stem}.jsonl"),
        stamp: crate::follow::Stamp::default(),
    }
}
