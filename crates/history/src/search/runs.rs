//! Which messages have which words, on disk.
//!
//! Words are kept in runs. A run is about a stretch of message numbers, and has every word of these messages once, in
//! order, with the numbers of the messages that have it. Runs are written once, from what was gathered in memory, and
//! later joined with their neighbours, so that there are never many. A run is cut into blocks of neighbouring words, each
//! one row: to look a word up is to read one block of each run.
//!
//! This is what a full-text table does inside, less all that is not needed here (positions, columns, texts, ranks), and
//! it is filled several times faster.

use std::collections::BTreeSet;

use rusqlite::{Connection, OptionalExtension, params};

use crate::error::{HistoryError, Result};

use super::gather::Gathered;
use super::{pairs, varint};

/// The tables. `last` and `first` are the numbers of the messages that a run is about; `word` is the first of a block.
pub(crate) const CREATE: &str =
    "CREATE TABLE run (id INTEGER PRIMARY KEY, first INTEGER NOT NULL, last INTEGER NOT NULL, size INTEGER NOT NULL);
     CREATE TABLE block (id INTEGER PRIMARY KEY, run INTEGER NOT NULL, word BLOB NOT NULL, data BLOB NOT NULL);
     CREATE UNIQUE INDEX block_word ON block (run, word);";

/// Bytes of a block, unless a single word has more.
const BLOCK: usize = 8 * 1024;
/// Runs are joined as long as the result is not larger: beyond that joining costs more than looking into one more run.
const LARGEST: i64 = 16 * 1024 * 1024;
/// A run is joined with the one before it if that is less than this many times as large.
const STEP: i64 = 4;

#[derive(Clone, Copy)]
pub(super) struct Run {
    id: i64,
    pub(super) first: i64,
    pub(super) last: i64,
    size: i64,
}

/// All runs, newest messages first.
pub(super) fn all(connection: &Connection) -> Result<Vec<Run>> {
    let mut statement =
        connection.prepare_cached("SELECT id, first, last, size FROM run ORDER BY first DESC")?;
    let rows = statement.query_map([], |row| {
        Ok(Run {
            id: row.get(0)?,
            first: row.get(1)?,
            last: row.get(2)?,
            size: row.get(3)?,
        })
    })?;
    rows.collect::<rusqlite::Result<_>>().map_err(Into::into)
}

/// Writes what was gathered as a run, and joins small ones.
pub(super) fn save(connection: &Connection, gathered: &mut Gathered) -> Result<()> {
    if gathered.is_empty() {
        return Ok(());
    }
    let (first, last) = gathered.numbers();
    let mut writer = Writer::begin(connection, first, last)?;
    gathered.in_order(|word, numbers| writer.word(word, &[numbers]))?;
    writer.finish()?;
    gathered.clear();
    join_small(connection)
}

fn join_small(connection: &Connection) -> Result<()> {
    loop {
        let runs = all(connection)?;
        let [newer, older, ..] = runs.as_slice() else {
            return Ok(());
        };
        if older.size >= STEP * newer.size || older.size + newer.size > LARGEST {
            return Ok(());
        }
        join(connection, older, newer)?;
    }
}

fn join(connection: &Connection, older: &Run, newer: &Run) -> Result<()> {
    let mut writer = Writer::begin(connection, older.first, newer.last)?;
    let mut left = Reader::new(connection, older.id);
    let mut right = Reader::new(connection, newer.id);
    let (mut a, mut b) = (left.next()?, right.next()?);
    loop {
        match (&a, &b) {
            (None, None) => break,
            (Some((word, numbers)), None) => {
                writer.word(word, &[numbers])?;
                a = left.next()?;
            }
            (None, Some((word, numbers))) => {
                writer.word(word, &[&moved(numbers, newer.first - older.first)?])?;
                b = right.next()?;
            }
            (Some((left_word, numbers)), Some((right_word, more))) => match left_word.cmp(right_word) {
                std::cmp::Ordering::Less => {
                    writer.word(left_word, &[numbers])?;
                    a = left.next()?;
                }
                std::cmp::Ordering::Greater => {
                    writer.word(right_word, &[&moved(more, newer.first - older.first)?])?;
                    b = right.next()?;
                }
                std::cmp::Ordering::Equal => {
                    // Counted on from the last number of the older run, not from its first.
                    let reached = sum(numbers)?;
                    let distance = newer.first - older.first - reached;
                    writer.word(left_word, &[numbers, &moved(more, distance)?])?;
                    a = left.next()?;
                    b = right.next()?;
                }
            },
        }
    }
    writer.finish()?;
    for run in [older.id, newer.id] {
        connection.execute("DELETE FROM block WHERE run = ?", [run])?;
        connection.execute("DELETE FROM run WHERE id = ?", [run])?;
    }
    Ok(())
}

/// A list of numbers whose first one is counted from elsewhere.
fn moved(numbers: &[u8], distance: i64) -> Result<Vec<u8>> {
    let mut at = 0;
    let first = varint::take(numbers, &mut at).ok_or_else(damaged)?;
    let mut out = Vec::with_capacity(numbers.len() + 4);
    let first = first.checked_add_signed(distance).ok_or_else(damaged)?;
    varint::push(&mut out, first);
    out.extend_from_slice(&numbers[at..]);
    Ok(out)
}

fn sum(numbers: &[u8]) -> Result<i64> {
    let (mut at, mut sum) = (0, 0u64);
    while at < numbers.len() {
        sum = varint::take(numbers, &mut at)
            .and_then(|distance| sum.checked_add(distance))
            .ok_or_else(damaged)?;
    }
    i64::try_from(sum).map_err(|_| damaged())
}

/// The error for a block that can't be decoded; the index is then built again.
fn damaged() -> HistoryError {
    let code = rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_CORRUPT);
    rusqlite::Error::SqliteFailure(code, Some("a block of words makes no sense".to_owned())).into()
}

struct Writer<'a> {
    connection: &'a Connection,
    run: i64,
    size: i64,
    first_word: Vec<u8>,
    data: Vec<u8>,
}

impl<'a> Writer<'a> {
    fn begin(connection: &'a Connection, first: i64, last: i64) -> Result<Self> {
        connection
            .prepare_cached("INSERT INTO run (first, last, size) VALUES (?, ?, 0)")?
            .execute([first, last])?;
        Ok(Self {
            connection,
            run: connection.last_insert_rowid(),
            size: 0,
            first_word: Vec::new(),
            data: Vec::with_capacity(2 * BLOCK),
        })
    }

    /// A word, with a list of numbers that may be in several parts.
    fn word(&mut self, word: &[u8], numbers: &[&[u8]]) -> Result<()> {
        if self.data.is_empty() {
            self.first_word.extend_from_slice(word);
        }
        varint::push(&mut self.data, word.len() as u64);
        self.data.extend_from_slice(word);
        varint::push(&mut self.data, numbers.iter().map(|part| part.len() as u64).sum());
        for part in numbers {
            self.data.extend_from_slice(part);
        }
        if self.data.len() >= BLOCK {
            self.flush()?;
        }
        Ok(())
    }

    fn flush(&mut self) -> Result<()> {
        if self.data.is_empty() {
            return Ok(());
        }
        self.connection
            .prepare_cached("INSERT INTO block (run, word, data) VALUES (?, ?, ?)")?
            .execute(params![self.run, self.first_word, self.data])?;
        self.size += i64::try_from(self.data.len()).unwrap_or(i64::MAX);
        self.first_word.clear();
        self.data.clear();
        Ok(())
    }

    fn finish(mut self) -> Result<()> {
        self.flush()?;
        self.connection
            .prepare_cached("UPDATE run SET size = ? WHERE id = ?")?
            .execute([self.size, self.run])?;
        Ok(())
    }
}

/// Reads a run word by word.
struct Reader<'a> {
    connection: &'a Connection,
    run: i64,
    block: Vec<u8>,
    at: usize,
    first_word: Vec<u8>,
}

impl<'a> Reader<'a> {
    fn new(connection: &'a Connection, run: i64) -> Self {
        Self {
            connection,
            run,
            block: Vec::new(),
            at: 0,
            first_word: Vec::new(),
        }
    }

    fn next(&mut self) -> Result<Option<(Vec<u8>, Vec<u8>)>> {
        if self.at >= self.block.len() {
            let next = self
                .connection
                .prepare_cached(
                    "SELECT word, data FROM block WHERE run = ? AND word > ? ORDER BY word LIMIT 1",
                )?
                .query_row(params![self.run, self.first_word], |row| {
                    Ok((row.get(0)?, row.get(1)?))
                })
                .optional()?;
            let Some((word, block)) = next else {
                return Ok(None);
            };
            (self.first_word, self.block, self.at) = (word, block, 0);
        }
        let (word, numbers) = entry(&self.block, &mut self.at).ok_or_else(damaged)?;
        Ok(Some((word.to_vec(), numbers.to_vec())))
    }
}

/// The word at a place of a block, and its list of numbers.
fn entry<'a>(block: &'a [u8], at: &mut usize) -> Option<(&'a [u8], &'a [u8])> {
    let mut piece = || {
        let length = usize::try_from(varint::take(block, at)?).ok()?;
        let piece = block.get(*at..at.checked_add(length)?)?;
        *at += length;
        Some(piece)
    };
    Some((piece()?, piece()?))
}

/// What a message must have to be found.
pub(super) enum Wanted {
    Word(Vec<u8>),
    /// A word that begins with this.
    Beginning(Vec<u8>),
    /// These words next to each other. Others may pass, too.
    Neighbours(Vec<u8>, Vec<u8>),
    /// The first word, and next to it one that begins with the second. Others may pass, too.
    NeighbourBeginning(Vec<u8>, Vec<u8>),
}

/// Beyond this many words, looking for neighbours of all of them takes longer than reading the messages.
const MOST_NEIGHBOURS: usize = 128;

/// The messages of a run that have all of this: their numbers, newest first.
pub(super) fn with_all(connection: &Connection, run: &Run, wanted: &[Wanted]) -> Result<Vec<i64>> {
    let mut lists = Vec::with_capacity(wanted.len());
    for wanted in wanted {
        let Some(list) = lists_of(connection, run, wanted)? else {
            continue;
        };
        if list.is_empty() {
            return Ok(Vec::new());
        }
        lists.push(list);
    }
    // The shortest first: what it does not have need not be looked for in the others.
    lists.sort_by_key(|lists| lists.iter().map(Vec::len).sum::<usize>());
    let mut lists = lists.into_iter();
    let Some(first) = lists.next() else {
        return Ok(Vec::new());
    };
    let mut found = united(&first)?;
    for list in lists {
        match list.as_slice() {
            [only] => keep_common(&mut found, only)?,
            several => {
                let others = united(several)?;
                found.retain(|number| others.binary_search(number).is_ok());
            }
        }
    }
    Ok(found
        .into_iter()
        .rev()
        .map(|number| run.first + i64::from(number))
        .collect())
}

/// The lists of numbers of the messages that have one of the things wanted. `None` if that can't be told.
fn lists_of(connection: &Connection, run: &Run, wanted: &Wanted) -> Result<Option<Vec<Vec<u8>>>> {
    let mut lists = Vec::new();
    match wanted {
        Wanted::Word(word) => lists.extend(list_of(connection, run, word)?),
        Wanted::Beginning(beginning) => {
            each_word(connection, run, beginning, |word, numbers| {
                let is_wanted = word.starts_with(beginning);
                if is_wanted {
                    lists.push(numbers.to_vec());
                }
                is_wanted
            })?;
        }
        Wanted::Neighbours(before, after) => {
            lists.extend(list_of(connection, run, &pairs::key_of(before, after))?);
        }
        Wanted::NeighbourBeginning(before, beginning) => {
            let mut keys = BTreeSet::new();
            each_word(connection, run, beginning, |word, _| {
                let is_wanted = word.starts_with(beginning);
                if is_wanted {
                    keys.insert(pairs::key_of(before, word));
                }
                is_wanted && keys.len() <= MOST_NEIGHBOURS
            })?;
            if keys.len() > MOST_NEIGHBOURS {
                return Ok(None);
            }
            for key in keys {
                lists.extend(list_of(connection, run, &key)?);
            }
        }
    }
    Ok(Some(lists))
}

fn list_of(connection: &Connection, run: &Run, wanted: &[u8]) -> Result<Option<Vec<u8>>> {
    let mut list = None;
    each_word(connection, run, wanted, |word, numbers| {
        list = (word == wanted).then(|| numbers.to_vec());
        false
    })?;
    Ok(list)
}

/// Calls `each` with the words of a run and their lists of numbers, beginning with the first that is not before `from`, as
/// long as it returns true.
fn each_word(
    connection: &Connection,
    run: &Run,
    from: &[u8],
    mut each: impl FnMut(&[u8], &[u8]) -> bool,
) -> Result<()> {
    let mut statement = connection.prepare_cached(
        "SELECT data FROM block WHERE run = ?1
         AND word >= coalesce((SELECT max(word) FROM block WHERE run = ?1 AND word <= ?2), ?2) ORDER BY word",
    )?;
    let mut rows = statement.query(params![run.id, from])?;
    while let Some(row) = rows.next()? {
        let block = row.get_ref(0)?.as_blob().map_err(|_| damaged())?;
        let mut at = 0;
        while at < block.len() {
            let (word, numbers) = entry(block, &mut at).ok_or_else(damaged)?;
            if word >= from && !each(word, numbers) {
                return Ok(());
            }
        }
    }
    Ok(())
}

/// The numbers of several lists, in order, relative to the first of the run.
fn united(lists: &[Vec<u8>]) -> Result<Vec<u32>> {
    let mut found = Vec::new();
    for list in lists {
        let (mut at, mut number) = (0, 0);
        while at < list.len() {
            number += varint::take(list, &mut at).ok_or_else(damaged)?;
            found.push(relative(number)?);
        }
    }
    if lists.len() > 1 {
        found.sort_unstable();
        found.dedup();
    }
    Ok(found)
}

fn keep_common(found: &mut Vec<u32>, list: &[u8]) -> Result<()> {
    let (mut at, mut number) = (0, 0);
    let mut next = || -> Result<Option<u32>> {
        if at >= list.len() {
            return Ok(None);
        }
        number += varint::take(list, &mut at).ok_or_else(damaged)?;
        relative(number).map(Some)
    };
    let mut other = next()?;
    let mut kept = 0;
    for read in 0..found.len() {
        let wanted = found[read];
        while other.is_some_and(|other| other < wanted) {
            other = next()?;
        }
        if other == Some(wanted) {
            found[kept] = wanted;
            kept += 1;
        }
    }
    found.truncate(kept);
    Ok(())
}

/// Numbers are kept plus one: no distance is 0.
fn relative(number: u64) -> Result<u32> {
    number
        .checked_sub(1)
        .and_then(|number| u32::try_from(number).ok())
        .ok_or_else(damaged)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_found_in_every_run_and_in_joined_ones() {
        let connection = Connection::open_in_memory().unwrap();
        connection.execute_batch(CREATE).unwrap();
        let mut gathered = Gathered::default();
        let mut number = 5;
        for size in [3000, 2000, 1, 7, 40, 1, 1, 900] {
            for _ in 0..size {
                let words = [
                    "all".to_owned(),
                    format!("word{}", number % 700),
                    format!("tail{}", number % 11),
                ];
                for word in words {
                    gathered.note(number, word.as_bytes());
                }
                number += 1;
            }
            save(&connection, &mut gathered).unwrap();
        }
        let runs = all(&connection).unwrap();
        assert!(runs.len() < 4, "{} runs", runs.len());
        assert_eq!((runs.last().unwrap().first, runs[0].last), (5, number - 1));
        let find = |words: &[(&str, bool)]| -> Vec<i64> {
            let wanted: Vec<Wanted> = words
                .iter()
                .map(|(word, is_open)| {
                    let word = word.as_bytes().to_vec();
                    if *is_open {
                        Wanted::Beginning(word)
                    } else {
                        Wanted::Word(word)
                    }
                })
                .collect();
            let found = runs
                .iter()
                .map(|run| with_all(&connection, run, &wanted).unwrap());
            found.flatten().collect()
        };
        let expected = |has: &dyn Fn(i64) -> bool| {
            (5..number)
                .rev()
                .filter(|number| has(*number))
                .collect::<Vec<_>>()
        };
        assert_eq!(find(&[("all", false)]), expected(&|_| true));
        assert_eq!(find(&[("word13", false)]), expected(&|number| number % 700 == 13));
        assert_eq!(
            find(&[("all", false), ("word13", false), ("tail3", false)]),
            expected(&|number| number % 700 == 13 && number % 11 == 3)
        );
        assert_eq!(
            find(&[("word69", true), ("tail", true)]),
            expected(&|number| number % 700 == 69 || number % 700 >= 690)
        );
        assert_eq!(find(&[("tail", false)]), Vec::<i64>::new());
        assert_eq!(find(&[("zzz", true)]), Vec::<i64>::new());
        assert_eq!(find(&[("a", true)]), expected(&|_| true));
    }
}
