//! Measures what Tiller takes before anyone uses it, beside the least that a server can take: a server on the standard
//! library alone, in xtask, which sends a fixed page.

use std::env;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};

use super::server::{Scratch, Server, median};
use crate::project::Project;
use crate::target::Target;
use crate::{build_release, megabytes};

const RUNS: usize = 20;

/// Long enough for what a server does after its ready line.
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
    server.memory()
}

#[expect(clippy::cast_precision_loss, reason = "a ratio for reading")]
fn ratio(bytes: u64, of: u64) -> f64 {
    bytes as f64 / of as f64
}

/// The baseline: answers every request with the same page until it is killed.
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
