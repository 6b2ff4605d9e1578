//! Looks words up in the index and reads the messages that have them.

use std::collections::HashMap;
use std::fs::File;
use std::io::{Read as _, Seek as _, SeekFrom};
use std::time::{Duration, Instant};

use memchr::memmem;
use rusqlite::{Connection, params};

use crate::error::Result;
use crate::json::Raw;
use crate::place::{Projects, Transcript};
use crate::record::{Kind, Record};
use crate::text::{self, Term};

use super::build::{Place, append_persisted, decode};
use super::{Index, runs};

/// Matches beyond this are not counted: nobody pages that far, and counting them all would take longer than finding them.
const MAX_COUNT: usize = 10_000;
/// Time for counting what is not on the page, and for reading messages whose words match but may not be what was asked for.
const COUNT_TIME: Duration = Duration::from_millis(10);
/// Time for filling the page when hardly any message whose words match is what was asked for.
const PAGE_TIME: Duration = Duration::from_millis(200);

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
            reader: LineReader {
                projects,
                files: HashMap::new(),
            },
            proves: wanted.terms.iter().any(|term| term.needs_proof),
            started: Instant::now(),
            found: Found {
                hits: Vec::new(),
                total: 0,
                is_exact: true,
            },
        };
        let words = words(wanted);
        'runs: for run in runs::all(connection)? {
            for number in runs::with_all(connection, &run, &words)? {
                if !search.candidate(number)? {
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
    reader: LineReader<'a>,
    proves: bool,
    started: Instant,
    found: Found,
}

impl Search<'_> {
    /// Takes the message with this number in, if it is one of those wanted. False when enough have been seen.
    fn candidate(&mut self, number: i64) -> Result<bool> {
        let Some(span) = self.spans.of(number) else {
            return Ok(true);
        };
        let timed = self.wanted.times != (i64::MIN..i64::MAX);
        if timed {
            let place = self.spans.place(self.connection, span, number)?;
            if place.is_none_or(|place| !self.wanted.times.contains(&place.time)) {
                return Ok(true);
            }
        }
        let on_page = self.found.total >= self.wanted.offset && self.found.hits.len() < self.wanted.limit;
        let proves = self.proves && self.started.elapsed() < COUNT_TIME;
        if !proves && self.proves && !on_page {
            // Out of time for proofs: the rest is counted as the words say.
            self.found.is_exact = false;
        }
        if on_page || proves {
            let Some(place) = self.spans.place(self.connection, span, number)? else {
                return Ok(true);
            };
            let path = &self.spans.list[span].path;
            let terms = if self.proves { self.wanted.terms } else { &[] };
            let Some(hit) = self.reader.read(path, place, terms) else {
                if self.started.elapsed() < PAGE_TIME {
                    return Ok(true);
                }
                self.found.is_exact = false;
                return Ok(false);
            };
            if on_page {
                self.found.hits.push(hit);
            }
        }
        self.found.total += 1;
        let is_full = self.found.total >= self.wanted.offset + self.wanted.limit;
        let is_late = self.found.total.is_multiple_of(64) && self.started.elapsed() >= COUNT_TIME;
        if is_full && (self.found.total >= MAX_COUNT || is_late) {
            self.found.is_exact = false;
            return Ok(false);
        }
        Ok(true)
    }
}

fn is_proved(text: &str, terms: &[Term]) -> bool {
    let text = text.to_lowercase();
    terms
        .iter()
        .all(|term| !term.needs_proof || text.contains(&term.text))
}

/// A quick look at the line as it is in the file, where text that needs no escapes stands as it is.
fn may_prove(line: &[u8], terms: &[Term]) -> bool {
    let lower = if terms.is_empty() {
        Vec::new()
    } else {
        line.to_ascii_lowercase()
    };
    let stands = |term: &Term| {
        let is_plain = !term.text.contains(['"', '\\', '\n', '\t']);
        let has_case = |letter: char| !letter.is_ascii() && (letter.is_lowercase() || letter.is_uppercase());
        !term.needs_proof
            || !is_plain
            || term.text.contains(has_case)
            || memmem::find(&lower, term.text.as_bytes()).is_some()
            || (!term.text.is_ascii() && memmem::find(line, b"\\u").is_some())
    };
    // The whole of a large result lies in another file.
    terms.iter().all(stands) || memmem::find(line, b"<persisted-output>").is_some()
}

struct Span {
    first: i64,
    count: i64,
    path: String,
}

struct Spans {
    list: Vec<Span>,
    /// The places of the span looked at last: neighbours are asked for one after another.
    open: Option<(usize, Vec<Place>)>,
}

impl Spans {
    fn load(connection: &Connection, admits: &mut impl FnMut(&str) -> bool) -> Result<Self> {
        let mut paths: HashMap<i64, Option<String>> = HashMap::new();
        let mut statement = connection.prepare_cached("SELECT id, path FROM source")?;
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            let path: String = row.get(1)?;
            let admitted = admits(&path);
            paths.insert(row.get(0)?, admitted.then_some(path));
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
                    path: path.clone(),
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

/// Reads messages from their places, keeping files open while results come from them.
struct LineReader<'a> {
    projects: &'a Projects,
    files: HashMap<String, Option<File>>,
}

impl LineReader<'_> {
    /// `None` if the file is gone, has something else there by now, or does not prove the terms.
    fn read(&mut self, path: &str, place: Place, terms: &[Term]) -> Option<Hit> {
        if self.files.len() > 64 {
            self.files.clear();
        }
        let projects = self.projects;
        let file = self
            .files
            .entry(path.to_owned())
            .or_insert_with(|| projects.open(path).ok().map(|(file, _)| file));
        let file = file.as_mut()?;
        file.seek(SeekFrom::Start(place.offset)).ok()?;
        let mut line = Vec::with_capacity(place.length as usize);
        file.take(u64::from(place.length)).read_to_end(&mut line).ok()?;
        if !may_prove(&line, terms) {
            return None;
        }
        let record = Record::read(&line)?;
        let mut text = Vec::new();
        text::searchable(&record, &mut text);
        if memchr::memmem::find(&text, b"<persisted-output>").is_some() {
            append_persisted(self.projects, &owner(path), &mut text);
        }
        let text = String::from_utf8_lossy(&text).into_owned();
        if !is_proved(&text, terms) {
            return None;
        }
        let mut is_tool_result = false;
        text::tool_results(&record, |_| is_tool_result = true);
        let string = |value: Option<Raw<'_>>| value.and_then(Raw::text).unwrap_or_default().into_owned();
        Some(Hit {
            path: path.to_owned(),
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
}

/// The session that a transcript, its own or a subagent's, belongs to.
pub(crate) fn owner(path: &str) -> Transcript {
    let mut parts = path.split('/');
    let project = parts.next().unwrap_or_default().to_owned();
    let stem = parts
        .next()
        .unwrap_or_default()
        .trim_end_matches(".jsonl")
        .to_owned();
    Transcript {
        project,
        stem,
        path: path.to_owned(),
        stamp: crate::follow::Stamp::default(),
    }
}
