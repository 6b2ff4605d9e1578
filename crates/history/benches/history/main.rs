//! Measures the history on a gigabyte of transcripts, beside the cost of merely reading it.
//!
//! `cargo bench -p tiller-history` prints a table and judges nothing: times on one machine say little about another,
//! but ratios within one run do. The corpus is generated once, in the folder for temporary files or in the folder that
//! `TILLER_BENCH_CORPUS` names. `TILLER_BENCH_CCUSAGE` names ccusage's executable, for comparison; without it that line
//! is left out. `cargo bench -p tiller-history -- list search` measures only these parts; without a name, everything.

#![allow(clippy::unwrap_used, clippy::expect_used)]
// Numbers here are sizes and times of a benchmark, far from the limits of their types.
#![allow(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    clippy::cast_sign_loss
)]
// Writing to a string can't fail.
#![allow(clippy::let_underscore_must_use)]

mod corpus;

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use corpus::{RARE_CHINESE, RARE_WORD, Shape};
use tiller_history::{History, Include, Offset, Page, SearchQuery, Session, UsageQuery};

/// How often a task is repeated; short tasks more often.
const ROUNDS: usize = 5;

/// The parts that can be measured alone.
const PARTS: [&str; 5] = ["list", "index", "open", "search", "usage"];

/// The first argument of a child process.
const CHILD: &str = "child";

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [child_mark, task, home, index] = arguments.as_slice()
        && child_mark == CHILD
    {
        return child(task, Path::new(home), Path::new(index));
    }
    // Cargo adds options of its own.
    let only: Vec<&str> = arguments
        .iter()
        .map(String::as_str)
        .filter(|argument| !argument.starts_with('-'))
        .collect();
    if let Some(unknown) = only.iter().find(|name| !PARTS.contains(name)) {
        eprintln!("there is no part {unknown:?}; the parts are {}", PARTS.join(", "));
        std::process::exit(2);
    }
    let wanted = |part: &str| only.is_empty() || only.contains(&part);
    let home = std::env::var_os("TILLER_BENCH_CORPUS").map_or_else(
        || std::env::temp_dir().join("tiller-history-corpus"),
        PathBuf::from,
    );
    let size = prepare(&home);
    let index = tempfile::tempdir().unwrap();
    println!("corpus: {:.0} MB in {}\n", size as f64 / 1e6, home.display());
    println!("{:<58} {:>10}   beside (and what to reach)", "what", "time");

    let list = wanted("list").then(|| {
        reading(&home);
        listing(&home, index.path())
    });
    if wanted("index") {
        building(&home, index.path(), size, list);
    } else if wanted("open") || wanted("search") {
        History::open(&home, Some(index.path()))
            .and_then(|history| history.update_index())
            .unwrap();
    }
    if wanted("open") {
        opening(&home, index.path());
    }
    if wanted("search") {
        searching(&home, index.path());
    }
    if wanted("usage") {
        usage(&home, index.path());
    }
}

fn row(what: &str, time: Duration, beside: &str) {
    println!("{what:<58} {:>7.1} ms   {beside}", time.as_secs_f64() * 1e3);
}

fn ratio(time: Duration, of: Duration, name: &str) -> String {
    format!("{:.2} × {name}", time.as_secs_f64() / of.as_secs_f64())
}

/// The fastest of several runs: other programs on the machine only ever add time.
fn best<T>(run: impl FnMut() -> T) -> Duration {
    times(run)[0]
}

/// The median of several runs.
fn median<T>(run: impl FnMut() -> T) -> Duration {
    let times = times(run);
    times[times.len() / 2]
}

fn once<T>(run: impl FnOnce() -> T) -> Duration {
    let start = Instant::now();
    drop(std::hint::black_box(run()));
    start.elapsed()
}

/// The times of several runs, the fastest first.
fn times<T>(mut run: impl FnMut() -> T) -> Vec<Duration> {
    let started = Instant::now();
    let mut times = Vec::new();
    while times.len() < ROUNDS
        || (times.len() < 10 * ROUNDS && started.elapsed() < Duration::from_millis(500))
    {
        times.push(once(&mut run));
    }
    times.sort_unstable();
    times
}

/// Generates the corpus if it does not exist, and reads it once so that the page cache has it.
fn prepare(home: &Path) -> u64 {
    let whole = home.join("whole");
    if !whole.exists() {
        println!("making the corpus …");
        let size = corpus::generate(home, &Shape::FULL).unwrap();
        std::fs::write(&whole, size.to_string()).unwrap();
    }
    run(&mut shell("cat", home));
    std::fs::read_to_string(&whole).unwrap().trim().parse().unwrap()
}

/// A program over all transcripts.
fn shell(program: &str, home: &Path) -> Command {
    let mut command = Command::new("sh");
    command
        .arg("-c")
        .arg(format!(
            "find \"$0/projects\" -name '*.jsonl' -print0 | xargs -0 {program}"
        ))
        .arg(home);
    command
}

fn run(command: &mut Command) {
    let status = command.stdout(Stdio::null()).stderr(Stdio::null()).status();
    assert!(
        status.is_ok_and(|status| status.success()),
        "{command:?} could not be run"
    );
}

fn reading(home: &Path) {
    row("cat", best(|| run(&mut shell("cat", home))), "");
    row("wc -l", best(|| run(&mut shell("wc -l", home))), "");
}

fn ripgrep(home: &Path) {
    let mut command = Command::new("rg");
    run(command
        .args(["-c", "\"type\":\"user\""])
        .arg(home.join("projects")));
}

/// The complete list: projects, and all sessions with every field.
fn list_all(home: &Path, index: Option<&Path>) -> usize {
    let history = History::open(home, index).unwrap();
    let projects = history.everything().unwrap();
    projects.iter().map(|project| project.sessions.len()).sum()
}

fn listing(home: &Path, index: &Path) -> Duration {
    // In turns: a machine that others use, too, is faster at one moment than at another.
    let (mut rg, mut without) = (Duration::MAX, Duration::MAX);
    for _ in 0..4 * ROUNDS {
        rg = rg.min(once(|| ripgrep(home)));
        without = without.min(once(|| assert_eq!(list_all(home, None), Shape::FULL.sessions)));
    }
    row("rg -c '\"type\":\"user\"'", rg, "");
    row(
        "list of all projects and sessions, no index",
        without,
        &ratio(without, rg, "rg (1.2)"),
    );
    let program = std::env::current_exe().unwrap();
    let output = Command::new(program)
        .args([CHILD, "list"])
        .arg(home)
        .arg(index)
        .output()
        .unwrap();
    println!(
        "memory for the list, and after: {}",
        String::from_utf8_lossy(&output.stdout).trim()
    );
    list_all(home, Some(index));
    let with = best(|| assert_eq!(list_all(home, Some(index)), Shape::FULL.sessions));
    row(
        "the same with the index",
        with,
        &ratio(with, without, "without (0.05)"),
    );
    without
}

fn building(home: &Path, index: &Path, size: u64, quiet: Option<Duration>) {
    let start = Instant::now();
    let program = std::env::current_exe().unwrap();
    let building = Command::new(program)
        .args([CHILD, "index"])
        .arg(home)
        .arg(index)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    // The list while another process builds the index.
    let beside = best(|| list_all(home, None));
    let output = building.wait_with_output().unwrap();
    let took = start.elapsed();
    let speed = size as f64 / 1e6 / took.as_secs_f64();
    row(
        "full-text index of everything, lists beside it included",
        took,
        &format!("{speed:.0} MB/s (60)"),
    );
    row(
        "list without index meanwhile",
        beside,
        &quiet.map_or_else(String::new, |quiet| ratio(beside, quiet, "alone")),
    );
    println!(
        "memory while indexing, and after: {}",
        String::from_utf8_lossy(&output.stdout).trim()
    );
}

/// Runs in a process of its own, so that its memory can be measured.
fn child(task: &str, home: &Path, index: &Path) {
    let builds = task == "index";
    let history = History::open(home, builds.then_some(index)).unwrap();
    history.projects().unwrap();
    if builds {
        history.update_index().unwrap();
    }
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let of = |name: &str| {
        let line = status
            .lines()
            .find(|line| line.starts_with(name))
            .unwrap_or_default();
        line.split_whitespace()
            .nth(1)
            .and_then(|number| number.parse::<u64>().ok())
            .unwrap_or(0)
            / 1024
    };
    println!("{} MB (120), {} MB (40)", of("VmHWM"), of("VmRSS"));
}

fn largest(history: &History) -> Session {
    let mut offset = 0;
    let mut largest: Option<Session> = None;
    loop {
        let page = history
            .all_sessions(Page {
                offset: Offset::FromStart(offset),
                limit: Page::MAX,
            })
            .unwrap();
        offset += page.sessions.len();
        largest = page
            .sessions
            .into_iter()
            .chain(largest)
            .max_by_key(|session| session.size_bytes);
        if offset >= page.total {
            return largest.expect("a session");
        }
    }
}

fn opening(home: &Path, index: &Path) {
    let history = History::open(home, Some(index)).unwrap();
    let session = largest(&history);
    let path = home
        .join("projects")
        .join(session.project.as_str())
        .join(format!("{}.jsonl", session.id));
    let whole = best(|| {
        let text = std::fs::read_to_string(&path).unwrap();
        text.lines()
            .map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap())
            .collect::<Vec<_>>()
    });
    row(
        &format!(
            "serde_json on the largest session, {} MB",
            session.size_bytes >> 20
        ),
        whole,
        "",
    );
    let last = |history: &History| {
        let page = history
            .messages(&session.id, Page::last(50), Include::Chain)
            .unwrap();
        assert_eq!(page.messages.len(), 50);
    };
    let first_time = best(|| {
        let history = History::open(home, Some(index)).unwrap();
        last(&history);
    });
    row(
        "its last 50 messages, from a cold start",
        first_time,
        &ratio(first_time, whole, "serde_json (0.02)"),
    );
    let again = best(|| last(&history));
    row(
        "its last 50 messages",
        again,
        &ratio(again, whole, "serde_json (0.02)"),
    );
    let without = History::open(home, None).unwrap();
    let first_without = best(|| {
        let history = History::open(home, None).unwrap();
        last(&history);
    });
    drop(without);
    row(
        "its last 50 messages, no index, never seen before",
        first_without,
        &ratio(first_without, whole, "serde_json"),
    );
}

fn searching(home: &Path, index: &Path) {
    let history = History::open(home, Some(index)).unwrap();
    // As in a running server, the list is already loaded.
    let projects = history.projects().unwrap().projects;
    let words = |text: &str| SearchQuery {
        text: text.to_owned(),
        ..SearchQuery::default()
    };
    let mut queries: Vec<(String, SearchQuery)> = [
        RARE_WORD,
        "quetz",
        RARE_CHINESE,
        "翼",
        "the",
        "serv",
        "login page",
        "登录",
        "登录页面",
        "\"检查密码缓存\"",
        "密码缓存性能优化用户名",
        "的事",
        "\"server request\"",
        "\"server req",
        "\"the server\"",
        "\"server the request\"",
        "\"page login server request\"",
        "\"request the server again\"",
        "server_request",
        "no_such_name_anywhere",
    ]
    .map(|text| (text.to_owned(), words(text)))
    .into();
    let month = 30 * 86_400_000;
    let now = jiff::Timestamp::now().as_millisecond();
    for text in ["the", "login page", "\"server request\"", "登录页面"] {
        let mut add = |with: &str, query: SearchQuery| queries.push((format!("{text}, {with}"), query));
        add(
            "in a project",
            SearchQuery {
                project: projects.first().map(|project| project.id.clone()),
                ..words(text)
            },
        );
        add(
            "of a tool",
            SearchQuery {
                tool: Some("Bash".to_owned()),
                ..words(text)
            },
        );
        add(
            "of a file and a model",
            SearchQuery {
                file: Some("file-1".to_owned()),
                model: Some("sonnet".to_owned()),
                ..words(text)
            },
        );
        add(
            "of a time",
            SearchQuery {
                from: Some(now - 14 * month),
                to: Some(now - 12 * month),
                ..words(text)
            },
        );
    }
    for (name, query) in queries {
        let mut total = String::new();
        let time = median(|| {
            let page = history.search(&query, Page::first(50)).unwrap();
            total = format!("{}{}", page.total, if page.total_is_exact { "" } else { "+" });
        });
        row(&format!("search {name}"), time, &format!("{total} found (30 ms)"));
    }
}

fn usage(home: &Path, index: &Path) {
    let query = UsageQuery {
        time_zone: jiff::tz::TimeZone::UTC,
        ..UsageQuery::default()
    };
    let ours = best(|| History::open(home, None).unwrap().usage(&query).unwrap());
    let history = History::open(home, Some(index)).unwrap();
    let report = history.usage(&query).unwrap();
    let indexed = best(|| history.usage(&query).unwrap());
    let total = &report.total;
    row(
        "usage of everything, no index",
        ours,
        &format!("${:.2}, {} messages", total.cost_usd, total.messages),
    );
    row("usage of everything", indexed, "");
    let Some(ccusage) = std::env::var_os("TILLER_BENCH_CCUSAGE") else {
        println!("ccusage: not given, see TILLER_BENCH_CCUSAGE");
        return;
    };
    let start = Instant::now();
    let output = Command::new(ccusage)
        .args([
            "daily",
            "--json",
            "--offline",
            "--mode=calculate",
            "--timezone=UTC",
        ])
        .env("CLAUDE_CONFIG_DIR", home)
        .output()
        .unwrap();
    let theirs = start.elapsed();
    let said: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
    let of = |name: &str| said["totals"][name].as_u64().unwrap_or(0);
    let equal = of("inputTokens") == total.tokens.input_tokens
        && of("outputTokens") == total.tokens.output_tokens
        && of("cacheCreationTokens") == total.tokens.cache_creation_input_tokens
        && of("cacheReadTokens") == total.tokens.cache_read_input_tokens;
    let beside = format!(
        "ours {} (0.1), tokens {}",
        ratio(ours, theirs, "it"),
        if equal { "equal" } else { "DIFFER" }
    );
    row("ccusage", theirs, &beside);
    println!(
        "cost: ccusage ${:.2}, ours ${:.2}",
        said["totals"]["totalCost"].as_f64().unwrap_or(0.0),
        total.cost_usd
    );
}
