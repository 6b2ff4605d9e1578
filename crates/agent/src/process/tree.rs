//! Ending everything that an agent has started.
//!
//! A process group is not enough: shells put their jobs into groups of their own, and a daemon leaves its parent.
//! So every run carries a mark in its environment, which children inherit. What belongs to a run is what is in its
//! group, what descends from it, and what carries its mark.

use std::collections::HashSet;

use rustix::process::{Pid, Signal, kill_process, kill_process_group};

/// The environment variable that marks the processes of one run.
pub const RUN_MARK: &str = "CLAUDE_AGENT_RUN";

/// The processes of one run: the CLI, which leads its own process group, and whatever it started.
#[derive(Debug, Clone)]
pub struct Tree {
    leader: Pid,
    mark: String,
    /// Everything ever seen, with its start time: a process whose parent has gone can be found again, and a
    /// recycled pid is not mistaken for it.
    seen: HashSet<(i32, u64)>,
}

impl Tree {
    /// The tree of a process that leads its own group and was started with [`RUN_MARK`] set to `mark`.
    pub fn new(leader: Pid, mark: impl Into<String>) -> Self {
        Self {
            leader,
            mark: mark.into(),
            seen: HashSet::new(),
        }
    }

    /// Looks for the living processes of the tree, without the zombies. Reads the process table: not for the hot path.
    pub fn living(&mut self) -> Vec<u32> {
        let table = table::read(&self.mark);
        let leader = self.leader.as_raw_nonzero().get();
        let mut members: HashSet<i32> = HashSet::new();
        for process in &table {
            if process.pid == leader
                || process.group == leader
                || process.marked
                || self.seen.contains(&(process.pid, process.started))
            {
                members.insert(process.pid);
            }
        }
        // Children of members are members; the table is not ordered, so until nothing new is found.
        loop {
            let before = members.len();
            for process in &table {
                if members.contains(&process.parent) {
                    members.insert(process.pid);
                }
            }
            if members.len() == before {
                break;
            }
        }
        let own = i32::try_from(std::process::id()).unwrap_or(0);
        members.remove(&own);
        let mut living = Vec::new();
        for process in table.iter().filter(|process| members.contains(&process.pid)) {
            self.seen.insert((process.pid, process.started));
            if !process.zombie {
                living.extend(u32::try_from(process.pid));
            }
        }
        living
    }

    /// Asks every process of the tree to end. Returns how many there were.
    pub fn terminate(&mut self) -> usize {
        self.signal(Signal::TERM)
    }

    /// Ends every process of the tree, at once. Returns how many there were.
    pub fn kill(&mut self) -> usize {
        self.signal(Signal::KILL)
    }

    fn signal(&mut self, signal: Signal) -> usize {
        let living = self.living();
        // The group first, in one system call: what it forks in the meantime is in the group too.
        if let Err(error) = kill_process_group(self.leader, signal) {
            tracing::trace!(%error, "the agent's process group has gone");
        }
        for pid in &living {
            let Some(pid) = i32::try_from(*pid).ok().and_then(Pid::from_raw) else {
                continue;
            };
            if let Err(error) = kill_process(pid, signal) {
                tracing::trace!(%error, ?pid, "the process has gone");
            }
        }
        living.len()
    }
}

#[cfg(target_os = "linux")]
mod table {
    //! The process table, from `/proc`.

    pub(super) struct Process {
        pub(super) pid: i32,
        pub(super) parent: i32,
        pub(super) group: i32,
        pub(super) started: u64,
        pub(super) zombie: bool,
        pub(super) marked: bool,
    }

    pub(super) fn read(mark: &str) -> Vec<Process> {
        let needle = format!("{}={mark}", super::RUN_MARK);
        let Ok(entries) = std::fs::read_dir("/proc") else {
            return Vec::new();
        };
        entries
            .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
            .filter_map(|pid| process(pid, needle.as_bytes()))
            .collect()
    }

    fn process(pid: i32, needle: &[u8]) -> Option<Process> {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        // The name is in brackets and may hold anything, brackets too: the fields follow the last one.
        let mut fields = stat.rsplit_once(')')?.1.split_ascii_whitespace();
        let state = fields.next()?;
        let parent = fields.next()?.parse().ok()?;
        let group = fields.next()?.parse().ok()?;
        // After the group (field 5), the start time is field 22.
        let started = fields.nth(16)?.parse().ok()?;
        // Other users' processes can't be read, and can't be ours.
        let marked = std::fs::read(format!("/proc/{pid}/environ"))
            .is_ok_and(|environment| environment.split(|byte| *byte == 0).any(|entry| entry == needle));
        Some(Process {
            pid,
            parent,
            group,
            started,
            zombie: state == "Z" || state == "X",
            marked,
        })
    }
}

#[cfg(not(target_os = "linux"))]
mod table {
    //! The process table where there is no `/proc`: what `ps` prints. Marks can't be seen there.

    use std::hash::{DefaultHasher, Hash, Hasher};

    pub(super) struct Process {
        pub(super) pid: i32,
        pub(super) parent: i32,
        pub(super) group: i32,
        pub(super) started: u64,
        pub(super) zombie: bool,
        pub(super) marked: bool,
    }

    pub(super) fn read(_mark: &str) -> Vec<Process> {
        let Ok(output) = std::process::Command::new("ps")
            .args(["-axo", "pid=,ppid=,pgid=,stat=,lstart="])
            .output()
        else {
            return Vec::new();
        };
        String::from_utf8_lossy(&output.stdout)
            .lines()
            .filter_map(process)
            .collect()
    }

    fn process(line: &str) -> Option<Process> {
        let mut fields = line.split_ascii_whitespace();
        let pid = fields.next()?.parse().ok()?;
        let parent = fields.next()?.parse().ok()?;
        let group = fields.next()?.parse().ok()?;
        let zombie = fields.next()?.starts_with('Z');
        let mut hasher = DefaultHasher::new();
        fields.for_each(|field| field.hash(&mut hasher));
        Some(Process {
            pid,
            parent,
            group,
            started: hasher.finish(),
            zombie,
            marked: false,
        })
    }
}
