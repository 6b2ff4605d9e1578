//! Helpers of several measurements: a server that is ended when dropped, a temporary folder, and the median.

use std::env;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, ensure};

/// A server process that is ended when dropped.
pub(super) struct Server {
    process: Child,
    /// Kept open: a server may not expect its standard output to be closed.
    output: BufReader<std::process::ChildStdout>,
}

impl Server {
    pub(super) fn start(mut command: Command) -> Result<Self> {
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

    /// Waits for the ready line. Returns the address, and the path of the link behind it.
    pub(super) fn ready(&mut self) -> Result<(String, String)> {
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
        Ok((host.to_owned(), format!("/{query}")))
    }

    /// Opens the link of the ready line, as a browser does.
    pub(super) fn open_page(&mut self) -> Result<()> {
        let (host, link) = self.ready()?;
        let host = host.as_str();
        let mut answer = get(host, &link, None)?;
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

    /// The resident memory in bytes.
    pub(super) fn memory(&self) -> Result<u64> {
        let status = format!("/proc/{}/status", self.process.id());
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
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended by itself; neither failure matters.
        self.process.kill().ok();
        self.process.wait().ok();
    }
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

pub(super) fn median(times: impl Iterator<Item = Result<Duration>>) -> Result<Duration> {
    let mut times = times.collect::<Result<Vec<_>>>()?;
    times.sort();
    times
        .get(times.len() / 2)
        .copied()
        .context("nothing was measured")
}

pub(super) struct Scratch {
    pub(super) path: PathBuf,
}

impl Scratch {
    pub(super) fn new() -> Result<Self> {
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
