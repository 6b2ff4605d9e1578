//! Measures the lists of a large history over HTTP: the first time, while the server is still indexing, and once
//! everything is indexed. For comparison: `cat` over the same files.

use std::env;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};

use super::server::{Scratch, Server, median};
use crate::project::Project;
use crate::target::Target;
use crate::{build_release, megabytes};

const KEY: &str = "a-key-for-this-benchmark-only";

/// How often the first list is measured, each time with a new data folder, and how often the later ones.
const FIRST_RUNS: usize = 5;
const LATER_RUNS: usize = 20;

/// Long enough for the server to release the memory of indexing.
const SETTLE: Duration = Duration::from_secs(20);

pub(super) fn measure(project: &Project, target: &Target) -> Result<()> {
    let corpus = env::var_os("TILLER_BENCH_CORPUS")
        .map_or_else(|| env::temp_dir().join("tiller-history-corpus"), PathBuf::from);
    ensure!(
        corpus.join("whole").is_file(),
        "no corpus in {}; `cargo xtask bench history` creates it",
        corpus.display()
    );
    // An executable that was built before can be measured, too.
    let executable = match env::var_os("TILLER_BENCH_EXECUTABLE") {
        Some(executable) => PathBuf::from(executable),
        None => build_release(project, target)?,
    };
    let scratch = Scratch::new()?;
    let start = |data: &Path| {
        let mut command = Command::new(&executable);
        command
            .args(["serve", "--port=0", "--no-open", "--data-dir"])
            .arg(data)
            .arg("--claude-home")
            .arg(&corpus)
            .env("TILLER_API_KEY", KEY);
        Server::start(command)
    };

    cat(&corpus)?;
    // In turns: a machine that others use, too, is faster at one moment than at another.
    let (mut plain, mut first) = (Vec::new(), Vec::new());
    for run in 0..FIRST_RUNS {
        plain.push(cat(&corpus));
        let mut server = start(&scratch.path.join(format!("data-{run}")))?;
        let (host, _) = server.ready()?;
        first.push(Client::connect(&host)?.lists());
    }
    let (plain, first) = (median(plain.into_iter())?, median(first.into_iter())?);
    row("cat over the same files", plain, "");
    let beside = format!("{:.2} × cat (1.0)", first.as_secs_f64() / plain.as_secs_f64());
    row("first complete list, new data folder", first, &beside);

    let mut server = start(&scratch.path.join("data-0"))?;
    let (host, _) = server.ready()?;
    let mut client = Client::connect(&host)?;
    while !client
        .get("/api/history/search?q=the")?
        .contains(r#""is_complete":true"#)
    {
        thread::sleep(Duration::from_millis(200));
    }
    let later = median((0..LATER_RUNS).map(|_| client.lists()))?;
    row("all lists once indexed", later, "(20 ms)");
    thread::sleep(SETTLE);
    println!("memory at rest: {} (40 MB)", megabytes(server.memory()?));
    Ok(())
}

fn row(what: &str, time: Duration, beside: &str) {
    println!("{what:<40} {:>8.1} ms   {beside}", time.as_secs_f64() * 1e3);
}

fn cat(corpus: &Path) -> Result<Duration> {
    let start = Instant::now();
    let status = Command::new("sh")
        .arg("-c")
        .arg("find \"$0/projects\" -name '*.jsonl' -print0 | xargs -0 cat")
        .arg(corpus)
        .stdout(Stdio::null())
        .status()?;
    ensure!(status.success(), "cat could not read the corpus");
    Ok(start.elapsed())
}

/// A connection that is reused for all requests, as in a browser.
struct Client {
    host: String,
    connection: BufReader<TcpStream>,
}

impl Client {
    fn connect(host: &str) -> Result<Self> {
        let connection = TcpStream::connect(host)?;
        connection.set_nodelay(true)?;
        Ok(Self {
            host: host.to_owned(),
            connection: BufReader::with_capacity(1 << 20, connection),
        })
    }

    /// Every project, and every session of each.
    fn lists(&mut self) -> Result<Duration> {
        let start = Instant::now();
        let projects = self.get("/api/history/projects")?;
        // xtask is built before everything else and does not parse JSON; ids of projects have no escapes.
        let ids = projects
            .split(r#"{"id":""#)
            .skip(1)
            .filter_map(|rest| rest.split('"').next());
        let mut count = 0;
        for id in ids {
            let sessions = self.get(&format!("/api/history/projects/{id}/sessions?limit=1000"))?;
            ensure!(
                sessions.contains(r#""total":"#),
                "{id} has no list: {sessions:.200}"
            );
            count += 1;
        }
        ensure!(count > 1, "the list of projects is {projects:.200}");
        Ok(start.elapsed())
    }

    fn get(&mut self, path: &str) -> Result<String> {
        write!(
            self.connection.get_mut(),
            "GET {path} HTTP/1.1\r\nHost: {}\r\nX-API-Key: {KEY}\r\n\r\n",
            self.host
        )?;
        let (mut line, mut length) = (String::new(), None);
        loop {
            line.clear();
            self.connection.read_line(&mut line)?;
            if line.trim().is_empty() {
                break;
            }
            if let Some((name, value)) = line.split_once(':')
                && name.eq_ignore_ascii_case("content-length")
            {
                length = Some(value.trim().parse::<usize>()?);
            }
        }
        let mut body = vec![0; length.with_context(|| format!("the answer to {path} has no length"))?];
        self.connection.read_exact(&mut body)?;
        Ok(String::from_utf8(body)?)
    }
}
