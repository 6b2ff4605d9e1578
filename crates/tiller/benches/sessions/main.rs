//! The cost of very many stored sessions: a server on a store with 100,000 sessions, of which 20 are active, compared
//! with a server on an empty store. Active means as after a crash: with a running turn and a queued prompt.
//!
//! `--test`: fewer sessions and one run.
#![expect(clippy::expect_used, reason = "a measurement that can't go on ends")]

mod server;

use std::fs;
use std::path::Path;
use std::time::Duration;

use rusqlite::{Connection, params};

use crate::server::Server;

const SESSIONS: u64 = 100_000;
const ACTIVE: u64 = 20;
const RUNS: usize = 9;

/// Long enough for what a server does after its first page.
const SETTLE: Duration = Duration::from_secs(2);

/// The figures of one store.
struct Figures {
    /// From the start to the first page.
    start: Duration,
    /// Resident memory, a while after the first page.
    memory: u64,
    /// The first page of the list, and then the list without pages.
    first_list: Duration,
    whole_list: Duration,
    /// How many bytes the list without pages has.
    list_bytes: usize,
    /// The peak resident memory until the list without pages was sent.
    most_memory: u64,
}

#[tokio::main]
async fn main() {
    let (sessions, runs) = if std::env::args().any(|argument| argument == "--test") {
        (ACTIVE * 10, 1)
    } else {
        (SESSIONS, RUNS)
    };
    let folder = tempfile::tempdir().expect("a folder");
    let [empty, full] = ["empty", "full"].map(|name| folder.path().join(name));
    fs::create_dir_all(folder.path().join("project")).expect("a folder");
    // The server creates the schema.
    Server::start(folder.path(), &empty).await.stop().await;
    copy(&empty, &full);
    fill(
        &full.join("sessions.db"),
        &folder.path().join("project"),
        sessions,
    );

    let empty = measure(folder.path(), &empty, runs).await;
    let full = measure(folder.path(), &full, runs).await;
    println!("{sessions} sessions, {ACTIVE} of them active, beside none (times: median of {runs})");
    let times = [
        ("start to first page", full.start, empty.start),
        ("first page of the list", full.first_list, empty.first_list),
        ("the whole list", full.whole_list, empty.whole_list),
    ];
    for (what, full, empty) in times {
        let ratio = full.as_secs_f64() / empty.as_secs_f64();
        let [full, empty] = [full, empty].map(|time| time.as_secs_f64() * 1e3);
        println!("  {what:<30} {full:>8.1} ms {empty:>8.1} ms {ratio:>6.1}x");
    }
    for (what, full, empty) in [
        ("memory after the start", full.memory, empty.memory),
        (
            "most memory, whole list sent",
            full.most_memory,
            empty.most_memory,
        ),
    ] {
        let [full, empty] = [full, empty].map(megabytes);
        println!(
            "  {what:<30} {full:>8.1} MB {empty:>8.1} MB {:>6.1}x",
            full / empty
        );
    }
    println!("  the whole list has {:.1} MB", megabytes(full.list_bytes as u64));
}

#[expect(clippy::cast_precision_loss, reason = "a figure for reading")]
fn megabytes(bytes: u64) -> f64 {
    bytes as f64 / 1e6
}

/// Every run has its own copy: a server recovers active sessions and changes them.
async fn measure(folder: &Path, data: &Path, runs: usize) -> Figures {
    let copied = folder.join("data");
    let mut starts = Vec::new();
    for run in 0.. {
        copy(data, &copied);
        let server = Server::start(folder, &copied).await;
        starts.push(server.first_page);
        if run + 1 < runs {
            server.stop().await;
            fs::remove_dir_all(&copied).expect("it can be deleted");
            continue;
        }
        tokio::time::sleep(SETTLE).await;
        let memory = server.memory("VmRSS:");
        let (first_list, _) = server.list(Some(100)).await;
        let (whole_list, list_bytes) = server.list(None).await;
        let most_memory = server.memory("VmHWM:");
        server.stop().await;
        fs::remove_dir_all(&copied).expect("it can be deleted");
        starts.sort();
        return Figures {
            start: starts[starts.len() / 2],
            memory,
            first_list,
            whole_list,
            list_bytes,
            most_memory,
        };
    }
    unreachable!("there is at least one run")
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("a folder");
    for name in ["sessions.db", "config.toml"] {
        fs::copy(from.join(name), to.join(name)).expect("a copy");
    }
}

/// Writes sessions as a killed server leaves them.
fn fill(database: &Path, cwd: &Path, sessions: u64) {
    let mut connection = Connection::open(database).expect("the database");
    let transaction = connection.transaction().expect("a transaction");
    let cwd = cwd.to_string_lossy();
    let mut add_session = transaction
        .prepare(
            "INSERT INTO sessions (id, title, claude_session_id, status, cwd, last_prompt, created_at, updated_at, \
             approval, queue, last_seq, runs, turn, number, summary) \
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?7, 'ask', ?8, 3, 1, ?9, ?10, ?11)",
        )
        .expect("the table");
    let mut add_message = transaction
        .prepare(
            "INSERT INTO messages (kind, id, session_id, data, created_at, place) VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
        )
        .expect("the table");
    let mut add_status = transaction
        .prepare(
            "INSERT INTO events (session_id, seq, kind, data, created_at) \
             VALUES (?1, 1, 'session.status', '{\"status\":\"running\"}', ?2)",
        )
        .expect("the table");
    for number in 1..=sessions {
        let id = |kind: u64| format!("0000000{kind}-0000-4000-8000-{number:012x}");
        let (session, prompt) = (id(1), id(2));
        let at = 1_700_000_000_000 + i64::try_from(number).expect("a small number");
        // Spread over all of them.
        let is_active = number % (sessions / ACTIVE) == 0;
        let (status, queue, turn) = if is_active {
            let queue = format!(r#"[{{"id":"{}","prompt":"and then this"}}]"#, id(3));
            let turn = r#"{"prompt_seq":2,"stopping":false,"undelivered":false,"after_stop":0}"#;
            ("running", queue, Some(turn))
        } else {
            ("completed", "[]".to_owned(), None)
        };
        let title = format!("Session {number}: look for the fault in the parser");
        let words = "The parser fails on empty lines. Find out why, and write a test.";
        add_session
            .execute(params![
                session,
                title,
                id(4),
                status,
                cwd,
                words,
                at,
                queue,
                turn,
                number,
                "{}"
            ])
            .expect("a row");
        add_status.execute(params![session, at]).expect("a row");
        let said =
            format!(r#"{{"type":"user_prompt","prompt":"{words}","promptId":"{prompt}","uuid":"{prompt}"}}"#);
        let answer =
            r#"{"type":"assistant","message":{"id":"m","content":[{"type":"text","text":"Done."}]}}"#;
        for (seq, kind, id, data) in [
            (2, "prompt", prompt, said),
            (3, "message", id(5), answer.to_owned()),
        ] {
            let place = (number << 32) + seq;
            add_message
                .execute(params![kind, id, session, data, at, place])
                .expect("a row");
        }
    }
    drop((add_session, add_message, add_status));
    transaction.commit().expect("on disk");
}
