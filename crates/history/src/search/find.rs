//! Looks words up in the index and reads the messages that have them.

use std::cell::RefCell;
use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use rayon::prelude::*;
use rusqlite::{Connection, Row, params};

use crate::error::Result;
use crate::read::json::Raw;
use crate::read::place::{Projects, Root, Transcript};
use crate::read::record::{Kind, Record};
use crate::search::text::{self, Term};

use super::build::{Place, append_persisted, decode};
use super::verify::Verifier;
use crate::index::Index;

/// More matches are not counted: no user pages that far, and counting all would take longer than finding the first.
const MAX_COUNT: usize = 10_000;
/// Time for counting beyond the page, and for reading messages whose words match but may not be a match.
const COUNT_TIME: Duration = Duration::from_millis(10);
/// Time for filling the page when hardly any message with the words is a match.
const PAGE_TIME: Duration = Duration::from_secs(2);

/// How many messages are read at once.
const TOGETHER: usize = 128;
/// The memory of lines up to this length is reused.
const LONG_LINE: usize = 256 * 1024;

/// What to search for.
pub(crate) struct Criteria<'a> {
    pub(crate) terms: &'a [Term],
    /// Only messages that call this tool, or return its result.
    pub(crate) tool: Option<&'a str>,
    /// Milliseconds, from (inclusive) to (exclusive).
    pub(crate) times: std::ops::Range<i64>,
    pub(crate) offset: usize,
    pub(crate) limit: usize,
}

/// A message that was found.
pub(crate) struct Hit {
    /// The transcript's path relative to the folder of projects.
    pub(crate) path: String,
    pub(crate) uuid: String,
    pub(crate) role: &'static str,
    pub(crate) timestamp: String,
    pub(crate) is_tool_result: bool,
    pub(crate) is_summary: bool,
    pub(crate) text: String,
}

pub(crate) struct Found {
    pub(crate) hits: Vec<Hit>,
    pub(crate) total: usize,
    /// Whether `total` is the number of all matches.
    pub(crate) is_exact: bool,
}

/// Finds messages in the transcripts that `admits` accepts: the most recently used conversation first, and within each
/// the newest message first.
pub(crate) fn find(
    index: &Index,
    projects: &Projects,
    criteria: &Criteria<'_>,
    mut admits: impl FnMut(&str) -> bool,
) -> Result<Found> {
    index.words.read(|connection| {
        let spans = Spans::load(connection, &mut admits)?;
        let mut search = Search {
            connection,
            spans,
            criteria,
            projects,
            files: Files {
                root: projects.root()?,
                open: HashMap::new(),
            },
            verifier: Verifier::of(criteria.terms),
            started: Instant::now(),
            full_since: None,
            found: Found {
                hits: Vec::new(),
                total: 0,
                is_exact: true,
            },
        };
        let mut statement = connection
            .prepare_cached("SELECT rowid FROM message WHERE message MATCH ? ORDER BY rowid DESC")?;
        let mut rows = statement.query_map([expression(criteria)], |row: &Row<'_>| row.get(0))?;
        if search.spans.are_in_order() {
            // The usual case: numbers grow with time, and the newest matches come first from the index.
            loop {
                let numbers = rows
                    .by_ref()
                    .take(TOGETHER)
                    .collect::<rusqlite::Result<Vec<i64>>>()?;
                if numbers.is_empty() || !search.candidates(&numbers)? {
                    break;
                }
            }
        } else {
            let numbers = rows.collect::<rusqlite::Result<Vec<i64>>>()?;
            for numbers in search.spans.in_order(&numbers).chunks(TOGETHER) {
                if !search.candidates(numbers)? {
                    break;
                }
            }
        }
        Ok(search.found)
    })
}

/// The query in FTS5's language. Words have only letters and digits, so nothing needs to be escaped.
fn expression(criteria: &Criteria<'_>) -> String {
    let mut all = String::new();
    for term in criteria.terms {
        if !all.is_empty() {
            all.push_str(" AND ");
        }
        all.push('"');
        all.push_str(&term.words.join(" "));
        all.push_str(if term.is_prefix { "\" *" } else { "\"" });
    }
    if let Some(tool) = criteria.tool {
        all.push_str(" AND \"");
        all.push_str(&text::tool_word(tool));
        all.push('"');
    }
    all
}

struct Search<'a> {
    connection: &'a Connection,
    spans: Spans,
    criteria: &'a Criteria<'a>,
    projects: &'a Projects,
    files: Files,
    verifier: Verifier,
    started: Instant,
    /// When the page was full and only counting was left.
    full_since: Option<Instant>,
    found: Found,
}

/// A message that has the words.
struct Candidate {
    path: Arc<str>,
    file: Arc<Source>,
    place: Place,
}

impl Search<'_> {
    /// Processes these messages. False when enough were found.
    fn candidates(&mut self, numbers: &[i64]) -> Result<bool> {
        if self.verifier.is_trivial() {
            return self.counted(numbers);
        }
        let mut candidates = Vec::with_capacity(numbers.len());
        for number in numbers {
            candidates.extend(self.candidate(*number)?);
        }
        // Most are not matches, and each has to be read to find out: on all cores at once.
        let hits: Vec<Hit> = candidates
            .into_par_iter()
            .filter_map(|candidate| self.files.read(&candidate, &self.verifier, self.projects))
            .collect();
        for hit in hits {
            self.take(|_| Ok(Some(hit)))?;
        }
        self.found.is_exact = !self.is_late() && self.found.total < MAX_COUNT;
        Ok(self.found.is_exact)
    }

    /// Counts messages whose words alone prove the match.
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
                let read =
                    |candidate: Candidate| search.files.read(&candidate, &search.verifier, search.projects);
                Ok(candidate.and_then(read))
            })?;
            let is_late = self.found.total.is_multiple_of(64) && self.is_late();
            if self.is_full() && (self.found.total >= MAX_COUNT || is_late) {
                self.found.is_exact = false;
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Counts a match, and keeps it if it is on the page.
    fn take(&mut self, hit: impl FnOnce(&mut Self) -> Result<Option<Hit>>) -> Result<()> {
        if self.found.total >= self.criteria.offset && self.found.hits.len() < self.criteria.limit {
            let Some(hit) = hit(self)? else { return Ok(()) };
            self.found.hits.push(hit);
        }
        self.found.total += 1;
        Ok(())
    }

    /// Whether the time for filling the page, or for counting once it is full, is over.
    fn is_late(&mut self) -> bool {
        if self.is_full() {
            let counting_since = self.full_since.get_or_insert_with(Instant::now);
            counting_since.elapsed() >= COUNT_TIME
        } else {
            self.started.elapsed() >= PAGE_TIME
        }
    }

    fn is_full(&self) -> bool {
        self.found.total >= self.criteria.offset + self.criteria.limit
    }

    fn is_timed(&self) -> bool {
        self.criteria.times != (i64::MIN..i64::MAX)
    }

    /// The position of a message; `None` if it is unknown, or outside of the requested time.
    fn place(&mut self, span: usize, number: i64) -> Result<Option<Place>> {
        let place = self.spans.place(self.connection, span, number)?;
        Ok(place.filter(|place| self.criteria.times.contains(&place.time)))
    }

    fn candidate(&mut self, number: i64) -> Result<Option<Candidate>> {
        let Some(span) = self.spans.of(number) else {
            return Ok(None);
        };
        let Some(place) = self.place(span, number)? else {
            return Ok(None);
        };
        let path = Arc::clone(&self.spans.list[span].path);
        let file = self.files.source(&path);
        Ok(Some(Candidate { path, file, place }))
    }
}

/// Reads a message. `None` if its file has something else there by now, or it is not a match.
fn read(
    path: &str,
    file: &File,
    place: &Place,
    line: &mut Vec<u8>,
    verifier: &Verifier,
    projects: &Projects,
) -> Option<Hit> {
    line.resize(place.length as usize, 0);
    // A tool's result may occur again after the text, which need not be read to reject the message.
    let (text, rest) = line.split_at_mut(place.text_end.min(place.length) as usize);
    read_exact_at(file, text, place.offset).ok()?;
    if !place.is_elsewhere && !verifier.may_be_in(text) {
        return None;
    }
    read_exact_at(file, rest, place.offset + text.len() as u64).ok()?;
    let record = Record::read(line)?;
    let mut text = Vec::new();
    text::searchable(&record, &mut text);
    if place.is_elsewhere {
        append_persisted(projects, &owner(path), &mut text);
    }
    let text = String::from_utf8_lossy(&text).into_owned();
    if !verifier.is_in(&text) {
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
        is_summary: record.is_compact_summary,
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

/// A file, opened on first use; `None` if it can't be opened.
type Source = OnceLock<Option<File>>;

/// The files of the results, kept open during a search.
struct Files {
    root: Option<Root>,
    open: HashMap<Arc<str>, Arc<Source>>,
}

impl Files {
    fn source(&mut self, path: &Arc<str>) -> Arc<Source> {
        if self.open.len() > 64 {
            self.open.clear();
        }
        Arc::clone(self.open.entry(Arc::clone(path)).or_default())
    }

    fn read(&self, candidate: &Candidate, verifier: &Verifier, projects: &Projects) -> Option<Hit> {
        thread_local! {
            static LINE: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
        }
        let Candidate { path, file, place } = candidate;
        let open = || Some(self.root.as_ref()?.open(path).ok()?.0);
        let file = file.get_or_init(open).as_ref()?;
        LINE.with_borrow_mut(|line| {
            let hit = read(path, file, place, line, verifier, projects);
            line.shrink_to(LONG_LINE);
            hit
        })
    }
}

struct Span {
    first: i64,
    count: i64,
    newest: i64,
    path: Arc<str>,
}

struct Spans {
    list: Vec<Span>,
    /// The positions of the last span: neighbours are requested one after another.
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
            connection.prepare_cached("SELECT first, count, source, newest FROM span ORDER BY first")?;
        let mut rows = statement.query([])?;
        let mut list = Vec::new();
        while let Some(row) = rows.next()? {
            let source: i64 = row.get(2)?;
            if let Some(Some(path)) = paths.get(&source) {
                list.push(Span {
                    first: row.get(0)?,
                    count: row.get(1)?,
                    newest: row.get(3)?,
                    path: Arc::clone(path),
                });
            }
        }
        Ok(Self { list, open: None })
    }

    /// Whether later messages have higher numbers.
    fn are_in_order(&self) -> bool {
        self.list.is_sorted_by_key(|span| span.newest)
    }

    /// Sorts by time, the newest first. The numbers are in falling order, so those of a span are neighbours.
    fn in_order(&self, numbers: &[i64]) -> Vec<i64> {
        let mut pieces = Vec::new();
        let mut rest = numbers;
        while let Some(number) = rest.first() {
            // A message whose file is gone is a group of its own.
            let span = self.of(*number).map(|span| &self.list[span]);
            let length = span.map_or(1, |span| rest.partition_point(|number| *number >= span.first));
            let (piece, others) = rest.split_at(length);
            pieces.push((span.map(|span| span.newest), piece));
            rest = others;
        }
        // With the same time, in the order of the numbers.
        pieces.sort_by_key(|(newest, _)| std::cmp::Reverse(*newest));
        pieces.into_iter().flat_map(|(_, piece)| piece).copied().collect()
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
        stamp: crate::read::follow::Stamp::default(),
    }
}
