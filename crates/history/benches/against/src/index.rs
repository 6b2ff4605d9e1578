//! Full-text search over all messages: the history's index, which is SQLite's FTS5, and tantivy.
//!
//! tantivy gets the same texts from the same scanner, cut into the same words, and the same terms of each query. The history
//! also reads the messages that it has found and cuts excerpts; tantivy only says which messages they are.

use std::hint::black_box;
use std::io::Write as _;
use std::path::Path;
use std::rc::Rc;
use std::time::Instant;

use tantivy::collector::{Count, TopDocs};
use tantivy::query::{BooleanQuery, FuzzyTermQuery, PhrasePrefixQuery, PhraseQuery, Query, TermQuery};
use tantivy::schema::{FAST, Field, IndexRecordOption, Schema, TextFieldIndexing, TextOptions};
use tantivy::tokenizer::{TextAnalyzer, Token, TokenStream, Tokenizer};
use tantivy::{Order, Term};
use tiller_history::{History, Page, SearchQuery, against};

use crate::{cpu, measured, peak, resident, size, speed};

pub(crate) const TASKS: [&str; 2] = ["index: ours", "index: tantivy"];

/// An index of the whole corpus.
struct Engine {
    search: Box<dyn FnMut(&str) -> usize>,
    /// Adds one message, so that the next search finds it.
    append: Box<dyn FnMut(&str)>,
}

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
    let mut engine = match task {
        "index: ours" => ours(home, folder.path()),
        _ => with_tantivy(home, folder.path()),
    };
    println!("{task:<28} {:>6} MB peak memory, {:.0} MB on disk", peak(), size(folder.path()));
    for query in QUERIES {
        let (found, time, wall) = median(|_| black_box((engine.search)(query)));
        println!("  {query:<40} {time:>8.2} ms, {wall:.2} ms of wall clock   {found} found");
    }
    let ((), time, wall) = median(|round| {
        (engine.append)(&format!("one more message about the server, number {round}, 登录页面"));
    });
    println!("  {:<40} {time:>8.2} ms, {wall:.2} ms of wall clock", "one more message");
    println!("{task:<28} {:>6} MB after all of this", resident());
}

/// The median of processor time and of wall clock, in milliseconds.
fn median<T>(mut run: impl FnMut(usize) -> T) -> (T, f64, f64) {
    let mut last = None;
    let mut times: Vec<(f64, f64)> = (0..15)
        .map(|round| {
            let start = Instant::now();
            let (result, time) = measured(|| run(round));
            last = Some(result);
            (time.as_secs_f64() * 1e3, start.elapsed().as_secs_f64() * 1e3)
        })
        .collect();
    let middle = times.len() / 2;
    times.sort_by(|a, b| a.0.total_cmp(&b.0));
    let time = times[middle].0;
    times.sort_by(|a, b| a.1.total_cmp(&b.1));
    (last.expect("at least one round"), time, times[middle].1)
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

fn ours(home: &Path, folder: &Path) -> Engine {
    let own = linked(home);
    let (before, started) = (cpu(), Instant::now());
    let history = Rc::new(History::open(own.path(), Some(folder)).expect("a history"));
    history.update_index().expect("an index");
    report("index: ours", home, before, started);
    let updated = Rc::clone(&history);
    Engine {
        search: Box::new(move |text| {
            let query = SearchQuery { text: text.to_owned(), ..SearchQuery::default() };
            history.search(&query, Page::first(50)).expect("a search").total
        }),
        // Includes looking for changes among all transcripts.
        append: Box::new(move |text| {
            let line = serde_json::json!({"type": "user", "uuid": "u", "message": {"content": text}});
            let path = own.path().join("projects/-more/7c9e6679-7425-40de-944b-e07fc1f90ae7.jsonl");
            std::fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
            let file = std::fs::File::options().create(true).append(true).open(path);
            writeln!(file.expect("a transcript"), "{line}").expect("a line");
            updated.update_index().expect("an index");
        }),
    }
}

/// The same transcripts in a folder to which more can be added.
fn linked(home: &Path) -> tempfile::TempDir {
    let own = tempfile::tempdir_in(home.parent().expect("a folder")).expect("a folder");
    for project in std::fs::read_dir(home.join("projects")).expect("projects").flatten() {
        let folder = own.path().join("projects").join(project.file_name());
        std::fs::create_dir_all(&folder).expect("a folder");
        for file in std::fs::read_dir(project.path()).expect("a project").flatten() {
            std::fs::hard_link(file.path(), folder.join(file.file_name())).expect("a link");
        }
    }
    own
}

/// The text of every message, with a rising number.
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
    /// Where each word ends in `letters`.
    ends: Vec<usize>,
    next: usize,
    token: Token,
}

impl Tokenizer for Words {
    type TokenStream<'a> = Cut;

    fn token_stream<'a>(&'a mut self, text: &'a str) -> Cut {
        let mut letters = String::with_capacity(text.len());
        let mut ends = Vec::new();
        against::words(text, |word| {
            letters.push_str(word);
            ends.push(letters.len());
        });
        Cut { letters, ends, next: 0, token: Token::default() }
    }
}

impl TokenStream for Cut {
    fn advance(&mut self) -> bool {
        let Some(end) = self.ends.get(self.next).copied() else {
            return false;
        };
        let start = self.next.checked_sub(1).map_or(0, |before| self.ends[before]);
        self.token.text.clear();
        self.token.text.push_str(&self.letters[start..end]);
        self.token.position = self.next;
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

fn with_tantivy(home: &Path, folder: &Path) -> Engine {
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
    let mut last = 0;
    each_text(home, |place, message| {
        last = place;
        let mut document = tantivy::TantivyDocument::default();
        document.add_text(text, message);
        document.add_u64(number, place);
        writer.add_document(document).expect("a document");
    });
    writer.commit().expect("a commit");
    writer.wait_merging_threads().expect("merges");
    report("index: tantivy", home, before, started);
    let reader = index.reader().expect("a reader");
    let updated = reader.clone();
    let mut writer: Option<tantivy::IndexWriter> = None;
    Engine {
        search: Box::new(move |query| {
            let searcher = reader.searcher();
            let query = tantivy_query(text, query);
            let newest = TopDocs::with_limit(50).order_by_u64_field("number", Order::Desc);
            let (found, total) = searcher.search(&query, &(newest, Count)).expect("a search");
            black_box(found);
            total
        }),
        append: Box::new(move |message| {
            let writer = writer.get_or_insert_with(|| index.writer_with_num_threads(1, 15_000_000).expect("a writer"));
            last += 1;
            let mut document = tantivy::TantivyDocument::default();
            document.add_text(text, message);
            document.add_u64(number, last);
            writer.add_document(document).expect("a document");
            writer.commit().expect("a commit");
            updated.reload().expect("a reload");
        }),
    }
}

fn tantivy_query(field: Field, query: &str) -> Box<dyn Query> {
    let word = |text: &str| Term::from_field_text(field, text);
    let queries = against::terms(query).into_iter().map(|term| -> Box<dyn Query> {
        match (term.words.as_slice(), term.is_prefix) {
            ([only], true) => Box::new(FuzzyTermQuery::new_prefix(word(only), 0, false)),
            ([only], false) => Box::new(TermQuery::new(word(only), IndexRecordOption::Basic)),
            (words, true) => Box::new(PhrasePrefixQuery::new(words.iter().map(|text| word(text)).collect())),
            (words, false) => Box::new(PhraseQuery::new(words.iter().map(|text| word(text)).collect())),
        }
    });
    Box::new(BooleanQuery::intersection(queries.collect()))
}
