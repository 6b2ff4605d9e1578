//! Full-text search over all messages: the history's index, tantivy and SQLite's FTS5.
//!
//! The libraries get the same texts from the same scanner. tantivy cuts them into the same words (Chinese by characters and
//! pairs); FTS5 has a tokenizer of its own, before which every Chinese character is set apart. Ours also reads the messages
//! that it has found and cuts excerpts; the libraries only say which they are.

use std::hint::black_box;
use std::path::Path;
use std::time::Instant;

use rusqlite::Connection;
use tantivy::collector::{Count, TopDocs};
use tantivy::query::{BooleanQuery, FuzzyTermQuery, PhraseQuery, Query, TermQuery};
use tantivy::schema::{FAST, Field, IndexRecordOption, Schema, TextFieldIndexing, TextOptions};
use tantivy::tokenizer::{TextAnalyzer, Token, TokenStream, Tokenizer};
use tantivy::{Order, Term};
use tiller_history::{History, Page, SearchQuery, against};

use crate::{cpu, measured, peak, size, speed};

pub(crate) const TASKS: [&str; 3] = ["index: ours", "index: tantivy", "index: FTS5"];

/// A rare word, a prefix, frequent words, phrases, and Chinese.
const QUERIES: [&str; 9] = [
    "quetzalcoatlus",
    "quetz",
    "the",
    "login page",
    "\"server request\"",
    "\"request the server again\"",
    "翼",
    "登录页面",
    "密码缓存性能优化用户名",
];

pub(crate) fn run(task: &str, home: &Path) {
    let folder = tempfile::tempdir().expect("a folder");
    let mut search: Box<dyn FnMut(&str) -> usize> = match task {
        "index: ours" => ours(home, folder.path()),
        "index: tantivy" => with_tantivy(home, folder.path()),
        _ => with_fts5(home, folder.path()),
    };
    println!("{task:<28} {:>6} MB peak memory, {:.0} MB on disk", peak(), size(folder.path()));
    for query in QUERIES {
        let mut times: Vec<_> = (0..15)
            .map(|_| measured(|| black_box(search(query))))
            .collect();
        times.sort_by_key(|(_, time)| *time);
        let (found, time) = times[times.len() / 2];
        println!("  {query:<40} {:>8.2} ms   {found} found", time.as_secs_f64() * 1e3);
    }
}

/// Prints how fast the corpus was indexed.
fn report(task: &str, home: &Path, before: std::time::Duration, started: Instant) {
    let mut bytes = 0;
    let spent = cpu() - before;
    let wall = started.elapsed();
    against::each_line(home, |line| bytes += line.len() as u64 + 1).expect("the corpus is read");
    println!(
        "{task:<28} {:>6.0} MB/s of processor time, {:.0} s of wall clock",
        speed(bytes, spent),
        wall.as_secs_f64()
    );
}

fn ours(home: &Path, folder: &Path) -> Box<dyn FnMut(&str) -> usize> {
    let (before, started) = (cpu(), Instant::now());
    let history = History::open(home, Some(folder)).expect("a history");
    history.update_index().expect("an index");
    report("index: ours", home, before, started);
    Box::new(move |text| {
        let query = SearchQuery { text: text.to_owned(), ..SearchQuery::default() };
        history.search(&query, Page::first(50)).expect("a search").total
    })
}

/// Every message's text, with a number that grows.
fn each_text(home: &Path, mut each: impl FnMut(u64, &str)) {
    let mut text = Vec::new();
    let mut number = 0;
    against::each_line(home, |line| {
        text.clear();
        against::searchable(line, &mut text);
        if !text.is_empty() {
            number += 1;
            each(number, &String::from_utf8_lossy(&text));
        }
    })
    .expect("the corpus is read");
}

/// tantivy's view of the history's own words.
#[derive(Clone, Default)]
struct Words;

struct Cut {
    letters: String,
    /// Where each word ends in `letters`, and its position in the text.
    words: Vec<(usize, usize)>,
    next: usize,
    token: Token,
}

fn is_pair(word: &str) -> bool {
    !word.is_ascii() && word.chars().count() == 2 && word.chars().all(|letter| letter >= '\u{3000}')
}

impl Tokenizer for Words {
    type TokenStream<'a> = Cut;

    fn token_stream<'a>(&'a mut self, text: &'a str) -> Cut {
        let mut letters = String::with_capacity(text.len());
        let mut words = Vec::new();
        let mut position = 0;
        against::words(text, |word| {
            letters.push_str(word);
            // A pair stands where its first character does.
            let at = if is_pair(word) { position - 1 } else { position };
            words.push((letters.len(), at));
            position = at + 1;
        });
        Cut { letters, words, next: 0, token: Token::default() }
    }
}

impl TokenStream for Cut {
    fn advance(&mut self) -> bool {
        let Some((end, position)) = self.words.get(self.next).copied() else {
            return false;
        };
        let start = self.next.checked_sub(1).map_or(0, |before| self.words[before].0);
        self.token.text.clear();
        self.token.text.push_str(&self.letters[start..end]);
        self.token.position = position;
        self.next += 1;
        true
    }

    fn token(&self) -> &Token {
        &self.token
    }

    fn token_mut(&mut self) -> &mut Token {
        &mut self.token
    }
}

fn with_tantivy(home: &Path, folder: &Path) -> Box<dyn FnMut(&str) -> usize> {
    let (before, started) = (cpu(), Instant::now());
    let mut schema = Schema::builder();
    let indexing = TextFieldIndexing::default()
        .set_tokenizer("words")
        .set_fieldnorms(false)
        .set_index_option(IndexRecordOption::WithFreqsAndPositions);
    let text = schema.add_text_field("text", TextOptions::default().set_indexing_options(indexing));
    let number = schema.add_u64_field("number", FAST);
    let index = tantivy::Index::create_in_dir(folder, schema.build()).expect("an index");
    index.tokenizers().register("words", TextAnalyzer::from(Words));
    let mut writer = index.writer_with_num_threads(1, 50_000_000).expect("a writer");
    each_text(home, |place, message| {
        let mut document = tantivy::TantivyDocument::default();
        document.add_text(text, message);
        document.add_u64(number, place);
        writer.add_document(document).expect("a document");
    });
    writer.commit().expect("a commit");
    writer.wait_merging_threads().expect("merges");
    report("index: tantivy", home, before, started);
    let reader = index.reader().expect("a reader");
    Box::new(move |query| {
        let searcher = reader.searcher();
        let query = tantivy_query(text, query);
        let newest = TopDocs::with_limit(50).order_by_u64_field("number", Order::Desc);
        let (found, total) = searcher.search(&query, &(newest, Count)).expect("a search");
        black_box(found);
        total
    })
}

fn tantivy_query(field: Field, query: &str) -> Box<dyn Query> {
    let term = |word: &str| Term::from_field_text(field, word);
    let one = |word: &str| -> Box<dyn Query> { Box::new(TermQuery::new(term(word), IndexRecordOption::Basic)) };
    let terms = |text: &str| {
        let mut all = Vec::new();
        against::words(text, |word| all.push(word.to_owned()));
        if all.iter().any(|word| is_pair(word)) {
            all.retain(|word| is_pair(word));
        }
        all
    };
    let phrase = |words: &[String]| -> Box<dyn Query> {
        match words {
            [only] => one(only),
            words => Box::new(PhraseQuery::new(words.iter().map(|word| term(word)).collect())),
        }
    };
    if let Some(quoted) = query.strip_prefix('"') {
        return phrase(&terms(quoted.trim_end_matches('"')));
    }
    let parts: Vec<&str> = query.split(' ').collect();
    let last = parts.len() - 1;
    let queries = parts.iter().enumerate().map(|(place, part)| {
        if place == last && part.is_ascii() {
            Box::new(FuzzyTermQuery::new_prefix(term(part), 0, false)) as Box<dyn Query>
        } else {
            phrase(&terms(part))
        }
    });
    Box::new(BooleanQuery::intersection(queries.collect()))
}

/// Chinese characters as words of their own.
fn apart(text: &str, out: &mut String) {
    out.clear();
    for letter in text.chars() {
        if letter >= '\u{3000}' {
            out.extend([' ', letter, ' ']);
        } else {
            out.push(letter);
        }
    }
}

fn with_fts5(home: &Path, folder: &Path) -> Box<dyn FnMut(&str) -> usize> {
    let (before, started) = (cpu(), Instant::now());
    let connection = Connection::open(folder.join("search.db")).expect("a database");
    connection
        .execute_batch(
            "PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; PRAGMA cache_size = -4000;
             CREATE VIRTUAL TABLE message USING fts5(text, content = '', columnsize = 0, tokenize = 'unicode61');
             BEGIN;",
        )
        .expect("a table");
    {
        let mut insert = connection
            .prepare("INSERT INTO message (rowid, text) VALUES (?, ?)")
            .expect("a statement");
        let mut spaced = String::new();
        each_text(home, |number, text| {
            apart(text, &mut spaced);
            insert
                .execute(rusqlite::params![number.cast_signed(), spaced])
                .expect("an insert");
        });
    }
    connection.execute_batch("COMMIT").expect("a commit");
    report("index: FTS5", home, before, started);
    Box::new(move |query| {
        let mut spaced = String::new();
        let query = if query.starts_with('"') {
            query.to_owned()
        } else {
            let parts = query.split(' ').map(|part| {
                apart(part, &mut spaced);
                format!("\"{}\"", spaced.trim())
            });
            let joined = parts.collect::<Vec<_>>().join(" ");
            if query.is_ascii() { joined + " *" } else { joined }
        };
        let mut newest = connection
            .prepare_cached("SELECT rowid FROM message WHERE message MATCH ? ORDER BY rowid DESC LIMIT 50")
            .expect("a statement");
        let found: Vec<i64> = newest
            .query_map([&query], |row| row.get(0))
            .expect("a search")
            .collect::<rusqlite::Result<_>>()
            .expect("rows");
        black_box(found);
        let mut count = connection
            .prepare_cached("SELECT count(*) FROM message WHERE message MATCH ?")
            .expect("a statement");
        count.query_row([&query], |row| row.get::<_, i64>(0)).expect("a count").try_into().unwrap_or(0)
    })
}
