//! Measures libraries beside Tiller's own code: `cargo xtask bench against [PART]`.
//!
//! Each task runs on one thread, in a process of its own, on the corpus of the history's benchmark, and is measured in
//! processor time: other programs on the machine change the wall clock, but hardly that.

mod index;
mod json;
mod limit;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [task, home] = arguments.as_slice() {
        return child(task, Path::new(home));
    }
    let home = std::env::var_os("TILLER_BENCH_CORPUS").map_or_else(
        || std::env::temp_dir().join("tiller-history-corpus"),
        PathBuf::from,
    );
    let only = arguments.first().map_or("", String::as_str);
    println!("corpus: {}\n", home.display());
    for task in json::TASKS.iter().chain(&index::TASKS).chain(&limit::TASKS) {
        if task.contains(only) {
            let program = std::env::current_exe().expect("this program");
            let status = Command::new(program).arg(task).arg(&home).status();
            assert!(status.is_ok_and(|status| status.success()), "{task} failed");
        }
    }
}

fn child(task: &str, home: &Path) {
    if json::TASKS.contains(&task) {
        json::run(task, home);
    } else if limit::TASKS.contains(&task) {
        limit::run(task);
    } else {
        index::run(task, home);
    }
}

/// Processor time of this process so far, all threads together.
fn cpu() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Duration::new(
        time.tv_sec.try_into().unwrap_or(0),
        time.tv_nsec.try_into().unwrap_or(0),
    )
}

/// The result of `run`, and the processor time that it took.
fn measured<T>(run: impl FnOnce() -> T) -> (T, Duration) {
    let start = cpu();
    let result = run();
    (result, cpu() - start)
}

/// The peak of this process's memory, in megabytes.
fn peak() -> u64 {
    status("VmHWM")
}

/// The memory that this process uses now, in megabytes.
fn resident() -> u64 {
    status("VmRSS")
}

/// The same in bytes.
fn resident_bytes() -> u64 {
    let pages = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let resident = pages.split_whitespace().nth(1).and_then(|pages| pages.parse::<u64>().ok());
    resident.unwrap_or(0) * rustix::param::page_size() as u64
}

fn status(name: &str) -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with(name));
    let kilobytes = line.and_then(|line| line.split_whitespace().nth(1)?.parse::<u64>().ok());
    kilobytes.unwrap_or(0) / 1024
}

/// Megabytes of the files in a folder.
fn size(folder: &Path) -> f64 {
    let entries = std::fs::read_dir(folder).expect("a folder").flatten();
    let bytes: u64 = entries
        .filter_map(|entry| entry.metadata().ok())
        .map(|metadata| metadata.len())
        .sum();
    bytes as f64 / 1e6
}

fn speed(bytes: u64, time: Duration) -> f64 {
    bytes as f64 / 1e6 / time.as_secs_f64()
}
