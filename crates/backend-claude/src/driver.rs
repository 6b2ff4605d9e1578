//! One driver per conversation: finds CLIs that were started elsewhere. CLIs that a Tiller started also hold a `Lease`.
//!
//! Two CLIs that write one transcript fork the conversation silently. A newer CLI leaves a note about itself that names
//! its conversation. Of the others, one that resumes a conversation usually names it on its command line; one that was
//! told to take the latest, or in which the user chose from a list, does not, but then its folder is the conversation's
//! and the transcript has grown since Tiller last used it.

use std::collections::HashMap;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, UNIX_EPOCH};

use rustix::process::{Pid, Signal};

use tiller_core::Timestamp;
use tiller_core::backend::Driver;
use tiller_process::{Stat, is_shield_launcher};

/// How long a process gets to end after each signal before it is killed.
const PATIENCE: Duration = Duration::from_secs(4);

/// How much of a command line is shown.
const SHOWN: usize = 200;

/// What to look for.
pub(crate) struct Wanted<'a> {
    pub(crate) conversation: &'a str,
    pub(crate) cwd: &'a Path,
    /// When Tiller last used the conversation.
    pub(crate) since: Timestamp,
    /// The CLI's folder with transcripts.
    pub(crate) claude_home: &'a Path,
}

/// Commands of a CLI that don't use a conversation.
const NO_CONVERSATION: &[&str] = &[
    "--version",
    "-v",
    "--help",
    "-h",
    "auth",
    "config",
    "doctor",
    "install",
    "mcp",
    "plugin",
    "setup-token",
    "update",
];

/// The process that drives the conversation, if one does. Reads all of `/proc`: a few milliseconds.
pub(crate) fn find(wanted: &Wanted<'_>) -> Option<Driver> {
    let mut in_terminal = None;
    for Process {
        pid,
        place,
        arguments,
    } in processes()
    {
        let noted = noted(wanted.claude_home, pid);
        match claim(&arguments, noted, wanted.conversation) {
            Claim::Ours => return describe(pid, &arguments),
            Claim::Unsaid if in_terminal.is_none() => {
                let here = std::fs::read_link(place.join("cwd"));
                if here.is_ok_and(|here| here == wanted.cwd) {
                    in_terminal = describe(pid, &arguments);
                }
            }
            Claim::Unsaid | Claim::Other => {}
        }
    }
    let written = last_write(wanted.claude_home, wanted.cwd, wanted.conversation)?;
    // Written after Tiller was done and after that process began: it is the writer.
    in_terminal.filter(|driver| written > wanted.since.0.saturating_add(1000) && written > driver.since.0)
}

/// The processes that drive any of these conversations, given with their folders. A CLI that does not name its
/// conversation is assumed to drive the one of its folder that was written last, if that was after it began.
pub(crate) fn find_all(conversations: &[(String, PathBuf)], claude_home: &Path) -> HashMap<String, Driver> {
    let mut found = HashMap::new();
    for candidate in candidates(claude_home).iter().filter(|found| found.is_there()) {
        let Candidate {
            pid,
            place,
            arguments,
            driven,
            ..
        } = candidate;
        if let Some(driven) = driven {
            if conversations
                .iter()
                .any(|(conversation, _)| conversation == driven)
                && let Some(driver) = describe(*pid, arguments)
            {
                found.insert(driven.clone(), driver);
            }
            continue;
        }
        let Ok(here) = std::fs::read_link(place.join("cwd")) else {
            continue;
        };
        let of_folder = conversations.iter().filter(|(_, folder)| *folder == here);
        let newest = of_folder
            .filter_map(|(conversation, _)| {
                Some((last_write(claude_home, &here, conversation)?, conversation))
            })
            .max();
        if let Some((written, conversation)) = newest
            && let Some(driver) = describe(*pid, arguments)
            && written > driver.since.0
        {
            found.entry(conversation.clone()).or_insert(driver);
        }
    }
    found
}

/// How long one look at all processes is reused. Forty lists of the history may be requested at once, and each look
/// takes milliseconds. A later process is seen by the next list.
const LOOK: Duration = Duration::from_millis(250);

/// A process that may drive a conversation.
struct Candidate {
    pid: u32,
    /// With the pid, this identifies the process.
    started: u64,
    /// Its folder under `/proc`.
    place: PathBuf,
    arguments: Vec<String>,
    /// The conversation, if the process names it; otherwise the process is a CLI.
    driven: Option<String>,
}

impl Candidate {
    /// Whether the process still runs.
    fn is_there(&self) -> bool {
        Stat::of(self.pid).is_some_and(|stat| !stat.is_zombie() && stat.started() == Some(self.started))
    }
}

/// A look at all processes, and the folder of the CLI's notes.
struct Look {
    at: Instant,
    claude_home: PathBuf,
    found: Arc<[Candidate]>,
}

/// The processes that may drive a conversation, as of at most [`LOOK`] ago.
fn candidates(claude_home: &Path) -> Arc<[Candidate]> {
    static LAST: Mutex<Option<Look>> = Mutex::new(None);
    // Held while looking: other callers get the same answer.
    let mut last = LAST.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(last) = &*last
        && last.at.elapsed() < LOOK
        && last.claude_home == claude_home
    {
        return Arc::clone(&last.found);
    }
    let found: Arc<[Candidate]> = processes()
        .filter_map(|process| {
            let Process {
                pid,
                place,
                arguments,
            } = process;
            let driven = noted(claude_home, pid).or_else(|| driven(&arguments));
            if driven.is_none() && !is_cli(&arguments) {
                return None;
            }
            Some(Candidate {
                pid,
                started: Stat::of(pid)?.started()?,
                place,
                arguments,
                driven,
            })
        })
        .collect();
    *last = Some(Look {
        at: Instant::now(),
        claude_home: claude_home.to_owned(),
        found: Arc::clone(&found),
    });
    found
}

/// For each of these conversations, given with the pid of our own agent: the other process that claims to drive it.
/// Processes that don't name their conversation can't be recognised while we write to it ourselves.
pub(crate) fn find_rivals(agents: &[(String, u32)], claude_home: &Path) -> HashMap<String, Driver> {
    let mut found = HashMap::new();
    for Process { pid, arguments, .. } in processes() {
        let driven = noted(claude_home, pid).or_else(|| driven(&arguments));
        let ours = agents
            .iter()
            .find(|(conversation, _)| driven.as_ref() == Some(conversation));
        if let Some((conversation, own)) = ours
            && !belongs_to(pid, *own)
            && let Some(driver) = describe(pid, &arguments)
        {
            found.entry(conversation.clone()).or_insert(driver);
        }
    }
    found
}

/// Whether the process is `own`, or one of its descendants.
fn belongs_to(pid: u32, own: u32) -> bool {
    let parent = |pid: &u32| Stat::of(*pid)?.parent().filter(|parent| *parent > 1);
    std::iter::successors(Some(pid), parent).any(|ancestor| ancestor == own)
}

/// A process of this user.
struct Process {
    pid: u32,
    /// Its folder under `/proc`.
    place: PathBuf,
    arguments: Vec<String>,
}

fn processes() -> impl Iterator<Item = Process> {
    let user = rustix::process::geteuid().as_raw();
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(move |entry| {
        let pid = entry.file_name().to_str()?.parse::<u32>().ok()?;
        let of_ours = entry.metadata().is_ok_and(|about| about.uid() == user);
        let place = entry.path();
        let arguments = of_ours.then(|| arguments(&place)).flatten()?;
        // A launcher starts at the same moment as its agent, whose note has the launcher's pid.
        if is_shield_launcher(&arguments) {
            return None;
        }
        Some(Process {
            pid,
            place,
            arguments,
        })
    })
}

#[derive(Debug, Eq, PartialEq)]
enum Claim {
    /// It claims to drive the conversation.
    Ours,
    /// A CLI that does not name its conversation.
    Unsaid,
    Other,
}

/// `noted` is the conversation in the process's own note.
fn claim(arguments: &[String], noted: Option<String>, conversation: &str) -> Claim {
    let has = |short: &str, long: &str| arguments.iter().any(|word| word == short || word == long);
    let goes_on = has("-c", "--continue") || !has("-p", "--print");
    match noted.or_else(|| driven(arguments)) {
        Some(driven) if driven == conversation => Claim::Ours,
        None if is_cli(arguments) && goes_on => Claim::Unsaid,
        _ => Claim::Other,
    }
}

/// The CLI's note about itself, as far as it is needed.
#[derive(serde::Deserialize)]
#[serde(rename_all = "camelCase")]
struct Note {
    session_id: String,
    /// The process's start time: an old note may have a reused pid.
    proc_start: String,
}

/// The conversation in a process's own note. A process in its own PID namespace knows itself by another number than
/// ours, and its note has that one. A shield gives an agent the number of its parent, see `process/src/shield`.
fn noted(claude_home: &Path, pid: u32) -> Option<String> {
    let notes = claude_home.join("sessions");
    let note_of = |number: u32, stat: &Stat| {
        let note = std::fs::read(notes.join(format!("{number}.json"))).ok()?;
        let note: Note = serde_json::from_slice(&note).ok()?;
        (note.proc_start == stat.started()?.to_string()).then_some(note.session_id)
    };
    let stat = Stat::of(pid)?;
    note_of(pid, &stat).or_else(|| note_of(stat.parent()?, &stat))
}

/// The conversation to which a command line writes.
fn driven(arguments: &[String]) -> Option<String> {
    let value = |flags: &[&str]| {
        let mut words = arguments.iter();
        words.find_map(|word| {
            let (name, inline) = match word.split_once('=') {
                Some((name, value)) => (name, Some(value.to_owned())),
                None => (word.as_str(), None),
            };
            flags.contains(&name).then_some(())?;
            inline.or_else(|| {
                let after = arguments.iter().skip_while(|other| *other != word).nth(1);
                after.cloned()
            })
        })
    };
    let new = value(&["--session-id"]);
    let resumed = value(&["--resume", "-r"]);
    let forks = arguments.iter().any(|word| word == "--fork-session");
    // A fork only reads the conversation that it comes from.
    if forks { new } else { resumed.or(new) }
}

/// Whether it is a CLI that may have a conversation: one that only prints its version, as at every start, has none.
fn is_cli(arguments: &[String]) -> bool {
    let named = arguments.iter().take(2).position(|word| {
        let name = Path::new(word).file_name().and_then(|name| name.to_str());
        matches!(name, Some("claude" | "claude.exe")) || word.ends_with("claude-code/cli.js")
    });
    let first = named.and_then(|at| arguments.get(at + 1)).map(String::as_str);
    named.is_some() && !first.is_some_and(|word| NO_CONVERSATION.contains(&word))
}

fn arguments(process: &Path) -> Option<Vec<String>> {
    let raw = std::fs::read(process.join("cmdline")).ok()?;
    let words = raw.split(|byte| *byte == 0).filter(|word| !word.is_empty());
    Some(
        words
            .map(|word| String::from_utf8_lossy(word).into_owned())
            .collect(),
    )
}

fn describe(pid: u32, arguments: &[String]) -> Option<Driver> {
    let (program, rest) = arguments.split_first()?;
    let name = Path::new(program).file_name()?.to_string_lossy();
    let command = std::iter::once(&*name).chain(rest.iter().map(String::as_str));
    let command: String = command
        .collect::<Vec<_>>()
        .join(" ")
        .chars()
        .take(SHOWN)
        .collect();
    let started = Stat::of(pid)?.started()?;
    Some(Driver {
        pid,
        command,
        since: wall_clock(started)?,
        started,
    })
}

fn wall_clock(ticks: u64) -> Option<Timestamp> {
    let stat = std::fs::read_to_string("/proc/stat").ok()?;
    let booted: i64 = stat
        .lines()
        .find_map(|line| line.strip_prefix("btime "))?
        .trim()
        .parse()
        .ok()?;
    let after = ticks * 1000 / rustix::param::clock_ticks_per_second().max(1);
    Some(Timestamp(booted * 1000 + i64::try_from(after).ok()?))
}

/// When the conversation's transcript was last written to, in milliseconds since 1970.
fn last_write(claude_home: &Path, cwd: &Path, conversation: &str) -> Option<i64> {
    let folder: String = cwd
        .to_string_lossy()
        .chars()
        .map(|character| {
            if character.is_ascii_alphanumeric() {
                character
            } else {
                '-'
            }
        })
        .collect();
    let file = format!("{conversation}.jsonl");
    let path = claude_home.join("projects").join(folder).join(file);
    let modified = std::fs::metadata(path).ok()?.modified().ok()?;
    let since = modified.duration_since(UNIX_EPOCH).ok()?;
    i64::try_from(since.as_millis()).ok()
}

/// Ends the process as its user at a terminal would, then with SIGTERM, then by force, on a user's request. An error if
/// it is still running.
pub(crate) async fn end(driver: &Driver) -> Result<(), String> {
    end_after(driver, PATIENCE).await
}

async fn end_after(driver: &Driver, patience: Duration) -> Result<(), String> {
    for (signal, patience) in [
        (Signal::INT, patience),
        (Signal::TERM, patience),
        (Signal::KILL, PATIENCE),
    ] {
        let Some(pid) = alive(driver) else { return Ok(()) };
        // A process that was suspended in its terminal must be continued to receive the signal.
        for signal in [signal, Signal::CONT] {
            if let Err(error) = rustix::process::kill_process(pid, signal) {
                tracing::debug!(%error, pid = driver.pid, "a signal could not be sent");
            }
        }
        let gone = async {
            while alive(driver).is_some() {
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        };
        if tokio::time::timeout(patience, gone).await.is_ok() {
            return Ok(());
        }
    }
    Err(format!(
        "The process {} ({}) could not be ended, not even by force. Try again later, or fork the session and continue in the fork.",
        driver.pid, driver.command
    ))
}

/// The process, if it is still the one that was found. A zombie does not count.
fn alive(driver: &Driver) -> Option<Pid> {
    let stat = Stat::of(driver.pid)?;
    let same = stat.started() == Some(driver.started) && !stat.is_zombie();
    same.then(|| Pid::from_raw(i32::try_from(driver.pid).ok()?))
        .flatten()
}

#[cfg(test)]
mod tests {
    use tokio::io::AsyncReadExt as _;

    use super::*;

    fn words(line: &str) -> Vec<String> {
        line.split_whitespace().map(str::to_owned).collect()
    }

    #[test]
    fn a_command_line_says_what_is_driven() {
        let cases = [
            ("claude --resume c1", Claim::Ours),
            ("claude -r c1 --model opus", Claim::Ours),
            ("/usr/bin/claude --print --session-id=c1", Claim::Ours),
            ("node /lib/claude-code/cli.js --resume=c1", Claim::Ours),
            ("claude --resume=c1 --fork-session", Claim::Unsaid),
            ("claude --resume=c0 --fork-session --session-id=c1", Claim::Ours),
            ("claude --resume c2", Claim::Other),
            ("claude", Claim::Unsaid),
            ("claude --continue", Claim::Unsaid),
            ("/opt/claude --version", Claim::Other),
            ("node /lib/claude-code/cli.js mcp list", Claim::Other),
            ("claude -p hello", Claim::Other),
            ("claude -p --continue hello", Claim::Unsaid),
            ("claude -c --print", Claim::Unsaid),
            ("grep c1 notes", Claim::Other),
            ("tiller attach c1", Claim::Other),
        ];
        for (line, expected) in cases {
            assert_eq!(claim(&words(line), None, "c1"), expected, "{line}");
        }
        for (note, expected) in [("c1", Claim::Ours), ("c2", Claim::Other)] {
            for line in ["claude", "claude -p hello", "claude --resume c1"] {
                assert_eq!(
                    claim(&words(line), Some(note.to_owned()), "c1"),
                    expected,
                    "{line}, by its note {note}"
                );
            }
        }
    }

    #[test]
    fn a_note_counts_for_the_process_that_wrote_it() {
        let folder = tempfile::tempdir().unwrap();
        let notes = folder.path().join("sessions");
        std::fs::create_dir(&notes).unwrap();
        let pid = std::process::id();
        let started = Stat::of(pid).unwrap().started().unwrap();
        let note = |started: u64| format!(r#"{{"pid":{pid},"sessionId":"c1","procStart":"{started}"}}"#);
        let path = notes.join(format!("{pid}.json"));
        std::fs::write(&path, note(started)).unwrap();
        assert_eq!(noted(folder.path(), pid).as_deref(), Some("c1"));
        std::fs::write(&path, note(started + 1)).unwrap();
        assert_eq!(noted(folder.path(), pid), None, "another's");
        std::fs::write(&path, "half a no").unwrap();
        assert_eq!(noted(folder.path(), pid), None);
    }

    /// A process that claims to drive the conversation, with this signal handling.
    async fn foreign(trap: &str, conversation: &str) -> tokio::process::Child {
        let mut child = tokio::process::Command::new("/bin/sh")
            .args([
                "-c",
                &format!("{trap}; echo ready; while :; do read -r line; done"),
                "claude",
                "--resume",
            ])
            .arg(conversation)
            .stdin(std::process::Stdio::piped())
            .stdout(std::process::Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        // A process that was just created has no command line yet.
        let mut ready = [0; 6];
        let stdout = child.stdout.as_mut().unwrap();
        stdout.read_exact(&mut ready).await.unwrap();
        child
    }

    #[tokio::test]
    async fn suspended_processes_and_those_that_ignore_signals_are_ended_too() {
        use std::os::unix::process::ExitStatusExt as _;

        let folder = tempfile::tempdir().unwrap();
        for (trap, suspended, ended_by) in [
            ("trap 'exit 7' INT", true, (Some(7), None)),
            ("trap '' INT TERM", false, (None, Some(9))),
        ] {
            let conversation = uuid::Uuid::new_v4().to_string();
            let mut child = foreign(trap, &conversation).await;
            let wanted = Wanted {
                conversation: &conversation,
                cwd: folder.path(),
                since: Timestamp::now(),
                claude_home: folder.path(),
            };
            let driver = find(&wanted).expect("found");
            if suspended {
                let pid = alive(&driver).unwrap();
                rustix::process::kill_process(pid, Signal::STOP).unwrap();
            }
            // Only one of them is to run out of patience.
            let patience = if suspended {
                PATIENCE
            } else {
                Duration::from_millis(100)
            };
            end_after(&driver, patience).await.unwrap();
            let status = child.wait().await.unwrap();
            assert_eq!((status.code(), status.signal()), ended_by, "{trap}");
        }
    }

    #[tokio::test]
    async fn a_process_is_found_with_its_start_and_ended_once() {
        let conversation = uuid::Uuid::new_v4().to_string();
        let folder = tempfile::tempdir().unwrap();
        let mut child = foreign("trap 'exit 0' INT", &conversation).await;
        let wanted = Wanted {
            conversation: &conversation,
            cwd: folder.path(),
            since: Timestamp::now(),
            claude_home: folder.path(),
        };
        let driver = find(&wanted).expect("found");
        assert_eq!(Some(driver.pid), child.id());
        assert!(driver.command.ends_with(&conversation));
        assert!((Timestamp::now().0 - driver.since.0).abs() < 60_000, "{driver:?}");

        let ours = |own: u32| find_rivals(&[(conversation.clone(), own)], folder.path());
        assert_eq!(ours(driver.pid), HashMap::new(), "our own agent");
        assert_eq!(
            ours(std::process::id()),
            HashMap::new(),
            "what our own agent has started"
        );
        assert_eq!(
            ours(u32::MAX),
            HashMap::from([(conversation.clone(), driver.clone())])
        );

        let another = Driver {
            started: driver.started + 1,
            ..driver.clone()
        };
        end(&another).await.unwrap();
        assert!(
            child.try_wait().unwrap().is_none(),
            "another process had that pid"
        );
        end(&driver).await.unwrap();
        child.wait().await.unwrap();
        assert_eq!(find(&wanted), None);
    }
}
