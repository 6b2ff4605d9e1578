//! What the shield and the sandbox cost: how much later an agent says its first word, and how fast it speaks from then on.
//!
//! The agent is a shell that says one word, or a million lines. Plain and protected starts take turns, so that what else the machine
//! does falls on all alike.

use std::io::{BufRead, BufReader, Read};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};

use super::server::{Scratch, median};
use crate::build_release;
use crate::project::Project;
use crate::target::Target;

const STARTS: usize = 100;
const RUNS: usize = 5;
const LINES: u32 = 1_000_000;

/// How much later an agent may start under the shield.
const GOAL: Duration = Duration::from_millis(30);

pub(super) fn measure(project: &Project, target: &Target) -> Result<()> {
    let executable = build_release(project, target)?;
    let scratch = Scratch::new()?;
    let (data, work) = (scratch.path.join("data"), scratch.path.join("work"));
    std::fs::create_dir_all(&data)?;
    std::fs::create_dir_all(&work)?;
    let agent = |protection: &[String], script: &str| {
        let mut command = if protection.is_empty() {
            let mut plain = Command::new("/bin/sh");
            plain.args(["-c", script]);
            plain
        } else {
            let mut shielded = Command::new(&executable);
            shielded.arg("shield").args(protection);
            shielded.args(["--", ":/bin/sh", ":-c", &format!(":{script}")]);
            shielded
        };
        command
            .current_dir(&work)
            .stdin(Stdio::null())
            .stdout(Stdio::piped());
        command
    };
    let hide = format!("--hide={}", data.display());
    let write = format!("--write={}", work.display());
    let shield = vec![hide.clone()];
    let files = vec![hide.clone(), write.clone(), "--sandbox".to_owned()];
    let closed = vec![
        hide,
        write,
        "--sandbox".to_owned(),
        "--closed".to_owned(),
        "--host=example.com".to_owned(),
    ];
    let kinds = [
        ("plain", Vec::new()),
        ("shield", shield),
        ("sandbox, files", files),
        ("sandbox", closed),
    ];

    let mut starts = vec![Vec::new(); kinds.len()];
    for _ in 0..STARTS {
        for ((_, protection), times) in kinds.iter().zip(&mut starts) {
            times.push(first_word(agent(protection, "echo ready"))?);
        }
    }
    let mut streams = vec![Vec::new(); kinds.len()];
    for _ in 0..RUNS {
        for ((_, protection), times) in kinds.iter().zip(&mut streams) {
            times.push(stream(agent(protection, &format!("echo ready; seq {LINES}")))?);
        }
    }
    let plain = median(starts[0].iter().copied().map(Ok))?;
    println!("start to first word, median of {STARTS}; a million lines after it, median of {RUNS}");
    for (((name, _), starts), streams) in kinds.iter().zip(starts).zip(streams) {
        let start = median(starts.into_iter().map(Ok))?;
        let lines = median(streams.into_iter().map(Ok))?;
        println!(
            "  {name:<16} {:>7.2} ms {:>+8.2} ms {:>9.0} ns a line",
            start.as_secs_f64() * 1e3,
            (start.as_secs_f64() - plain.as_secs_f64()) * 1e3,
            lines.as_secs_f64() * 1e9 / f64::from(LINES),
        );
        if *name == "shield" && start > plain + GOAL {
            println!(
                "    later than the {} ms that the shield may cost",
                GOAL.as_millis()
            );
        }
    }
    Ok(())
}

fn first_word(mut command: Command) -> Result<Duration> {
    let start = Instant::now();
    let mut child = command.spawn()?;
    let mut output = BufReader::new(child.stdout.take().context("no output")?);
    let mut line = String::new();
    output.read_line(&mut line)?;
    let time = start.elapsed();
    ensure!(line == "ready\n", "the agent did not start: {line:?}");
    child.wait()?;
    Ok(time)
}

fn stream(mut command: Command) -> Result<Duration> {
    let mut child = command.spawn()?;
    let mut output = BufReader::with_capacity(64 * 1024, child.stdout.take().context("no output")?);
    let mut line = String::new();
    output.read_line(&mut line)?;
    let start = Instant::now();
    let mut rest = Vec::new();
    output.read_to_end(&mut rest)?;
    let time = start.elapsed();
    ensure!(
        rest.ends_with(format!("\n{LINES}\n").as_bytes()),
        "lines are missing"
    );
    child.wait()?;
    Ok(time)
}
