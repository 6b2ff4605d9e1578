//! How much of the machine Tiller takes before anyone asks it for anything, beside the least that a server can take: one
//! that is written on the standard library alone, is part of xtask, and sends a fixed page.

use std::env;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};

use crate::project::Project;
use crate::target::Target;
use crate::{build_release, megabytes};

const RUNS: usize = 20;

/// Long enough for what a server still does after its ready line.
const SETTLE: Duration = Duration::from_secs(2);

pub(crate) const BASELINE: &str = "__baseline-server";

pub(super) fn measure(project: &Project, target: &Target) -> Result<()> {
    let executable = build_release(project, target)?;
    let scratch = Scratch::new()?;
    let fresh = (0..RUNS)
        .map(|run| scratch.path.join(format!("data-{run}")))
        .collect::<Vec<_>>();

    let tiller = |data: &Path| {
        let mut command = Command::new(&executable);
        command
            .args(["serve", "--port=0", "--no-open", "--data-dir"])
            .arg(data);
        command.arg("--claude-home").arg(scratch.path.join("claude-home"));
        command
    };
    let baseline = || -> Result<Command> {
        let mut command = Command::new(env::current_exe()?);
        command.arg(BASELINE);
        Ok(command)
    };

    let first = median(fresh.iter().map(|data| time_to_first_page(tiller(data))))?;
    let again = median(fresh.iter().map(|data| time_to_first_page(tiller(data))))?;
    let least = median((0..RUNS).map(|_| time_to_first_page(baseline()?)))?;
    let memory = idle_memory(tiller(&fresh[0]))?;
    let least_memory = idle_memory(baseline()?)?;

    println!(
        "release executable: {}",
        megabytes(fs::metadata(&executable)?.len())
    );
    println!(
        "  {:<34} {:>11} {:>11}",
        format!("(times: median of {RUNS})"),
        "tiller",
        "baseline"
    );
    for (what, time) in [
        ("first page, new data folder", first),
        ("first page, existing data folder", again),
    ] {
        println!(
            "  {what:<34} {:>8.1} ms {:>8.1} ms {:>6.1}x",
            time.as_secs_f64() * 1e3,
            least.as_secs_f64() * 1e3,
            time.as_secs_f64() / least.as_secs_f64(),
        );
    }
    println!(
        "  {:<34} {:>11} {:>11} {:>6.1}x",
        "idle resident memory",
        megabytes(memory),
        megabytes(least_memory),
        ratio(memory, least_memory),
    );
    Ok(())
}

/// A process that is not left behind.
struct Server {
    process: Child,
    /// Kept open: a server may not like its standard output to be closed.
    output: BufReader<std::process::ChildStdout>,
}

impl Server {
    fn start(mut command: Command) -> Result<Self> {
        let mut process = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()?;
        let output = process.stdout.take().context("standard output is not piped")?;
        Ok(Self {
            process,
            output: BufReader::new(output),
        })
    }

    /// Waits for the ready line and does what a browser does with its link.
    fn open_page(&mut self) -> Result<()> {
        let mut line = String::new();
        while !line.contains("ready: http://") {
            line.clear();
            ensure!(
                self.output.read_line(&mut line)? > 0,
                "the server ended before it was ready"
            );
        }
        let (_, address) = line
            .trim()
            .split_once("http://")
            .context("the ready line has no link")?;
        let (host, query) = address.split_once('/').context("the link has no path")?;
        let mut answer = get(host, &format!("/{query}"), None)?;
        if let Some(cookie) = answer.cookie {
            answer = get(host, "/", Some(&cookie))?;
        }
        ensure!(
            answer.status == 200 && answer.has_body,
            "the page was answered with {}",
            answer.status
        );
        Ok(())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended by itself; there is nothing to be done about either failure.
        self.process.kill().ok();
        self.process.wait().ok();
    }
}

fn time_to_first_page(command: Command) -> Result<Duration> {
    let start = Instant::now();
    let mut server = Server::start(command)?;
    server.open_page()?;
    Ok(start.elapsed())
}

fn idle_memory(command: Command) -> Result<u64> {
    let mut server = Server::start(command)?;
    server.open_page()?;
    thread::sleep(SETTLE);
    let status = format!("/proc/{}/status", server.process.id());
    let status = fs::read_to_string(&status).context("memory can be measured on Linux only")?;
    let kilobytes = status
        .lines()
        .find_map(|line| {
            line.strip_prefix("VmRSS:")?
                .trim()
                .strip_suffix(" kB")?
                .parse::<u64>()
                .ok()
        })
        .context("/proc does not say how much memory is resident")?;
    Ok(kilobytes * 1024)
}

struct Answer {
    status: u16,
    cookie: Option<String>,
    has_body: bool,
}

fn get(host: &str, path: &str, cookie: Option<&str>) -> Result<Answer> {
    let mut connection = TcpStream::connect(host)?;
    connection.set_nodelay(true)?;
    let cookie = cookie
        .map(|cookie| format!("Cookie: {cookie}\r\n"))
        .unwrap_or_default();
    write!(
        connection,
        "GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n{cookie}\r\n"
    )?;
    let mut answer = Vec::new();
    connection.read_to_end(&mut answer)?;
    let answer = String::from_utf8_lossy(&answer);
    let (head, body) = answer
        .split_once("\r\n\r\n")
        .context("the answer has no end of headers")?;
    let status = head
        .split(' ')
        .nth(1)
        .and_then(|status| status.parse().ok())
        .context("no status")?;
    let cookie = head.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        let is_cookie = name.eq_ignore_ascii_case("set-cookie");
        is_cookie.then(|| value.split(';').next().unwrap_or_default().trim().to_owned())
    });
    Ok(Answer {
        status,
        cookie,
        has_body: !body.is_empty(),
    })
}

fn median(times: impl Iterator<Item = Result<Duration>>) -> Result<Duration> {
    let mut times = times.collect::<Result<Vec<_>>>()?;
    times.sort();
    times
        .get(times.len() / 2)
        .copied()
        .context("nothing was measured")
}

#[expect(clippy::cast_precision_loss, reason = "a ratio for reading")]
fn ratio(bytes: u64, of: u64) -> f64 {
    bytes as f64 / of as f64
}

struct Scratch {
    path: PathBuf,
}

impl Scratch {
    fn new() -> Result<Self> {
        let path = env::temp_dir().join(format!("tiller-bench-{}", std::process::id()));
        fs::create_dir(&path).with_context(|| format!("{} can't be created", path.display()))?;
        Ok(Self { path })
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_dir_all(&self.path) {
            eprintln!("{} can't be deleted: {error}", self.path.display());
        }
    }
}

/// The baseline: answers every request with the same page, until it is killed.
pub(crate) fn serve_baseline() -> Result<()> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    println!("baseline is ready: http://{}/", listener.local_addr()?);
    for connection in listener.incoming() {
        let mut connection = connection?;
        let mut request = BufReader::new(connection.try_clone()?);
        let mut line = String::new();
        while request.read_line(&mut line)? > 2 {
            line.clear();
        }
        let page = "<!doctype html><title>baseline</title>";
        write!(
            connection,
            "HTTP/1.1 200 OK\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{page}",
            page.len()
        )?;
    }
    bail!("the listener ended")
}
