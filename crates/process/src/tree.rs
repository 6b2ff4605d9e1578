//! Ends everything that an agent has started.
//!
//! A process group is not enough: shells put their jobs into groups of their own, and a daemon leaves its parent. So
//! every run has a mark in its environment, which children inherit. The processes of a run are those in its group, its
//! descendants, and those with its mark. A daemon may escape all three; it then becomes a child of the process that
//! adopts the run's orphans, if there is one, and so all descendants of that process belong to the run, too.
//!
//! Process ids are reused: over time, and all of them after a restart of the machine or its container. So a pid alone
//! proves nothing, see [`Tree::look`].

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};

use rustix::process::{Pid, Signal, kill_process, kill_process_group};

/// The environment variable that marks the processes of one run.
pub const RUN_MARK: &str = "CLAUDE_AGENT_RUN";

/// The processes of one run: the agent, which leads its own process group, and everything that it started.
#[derive(Debug, Clone)]
pub struct Tree {
    leader: Pid,
    /// The leader's start time, if the leader still existed when it was read.
    started: Option<u64>,
    mark: String,
    /// The process that adopts the orphans of this run, and of no other.
    keeper: Option<ProcessIdentity>,
    /// The process group with the leader's number is known to be its own.
    owns_group: bool,
    /// All processes ever seen, with their start times: an orphan can be found again, and a reused pid is not mistaken
    /// for it.
    seen: HashSet<(i32, u64)>,
}

/// Identifies a [`Tree`] across processes and reused process ids.
#[derive(Debug, Clone, PartialEq, Eq, serde::Deserialize, serde::Serialize)]
pub struct TreeIdentity {
    leader: i32,
    started: Option<u64>,
    mark: String,
    /// The boot id of the machine, if the system has one. Absent in files of earlier versions.
    #[serde(default)]
    boot: Option<String>,
    /// Absent in files of earlier versions.
    #[serde(default)]
    keeper: Option<ProcessIdentity>,
}

/// Identifies a process across reused process ids.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Deserialize, serde::Serialize)]
struct ProcessIdentity {
    pid: i32,
    started: u64,
}

impl ProcessIdentity {
    fn is(self, process: &table::Process) -> bool {
        process.pid == self.pid && process.started == self.started
    }
}

impl Tree {
    /// The tree of a process that leads its own group and was started with [`RUN_MARK`] set to `mark`.
    pub fn new(leader: Pid, mark: impl Into<String>) -> Self {
        let started = table::started(leader.as_raw_nonzero().get());
        Self {
            leader,
            started,
            mark: mark.into(),
            keeper: None,
            owns_group: started.is_some(),
            seen: HashSet::new(),
        }
    }

    /// The same tree, whose leader is a child of this process. As this process has no other children and adopts orphans
    /// (on Linux as their "subreaper"), all of its descendants belong to the tree; this process does not.
    #[must_use]
    pub fn kept_by_this_process(mut self) -> Self {
        let pid = i32::try_from(std::process::id()).unwrap_or(0);
        self.keeper = table::started(pid).map(|started| ProcessIdentity { pid, started });
        self
    }

    /// What another process needs to find the same tree.
    pub fn identity(&self) -> TreeIdentity {
        TreeIdentity {
            leader: self.leader.as_raw_nonzero().get(),
            started: self.started,
            mark: self.mark.clone(),
            boot: table::boot(),
            keeper: self.keeper,
        }
    }

    /// The tree of that identity; `None` if it names no process, or one from before the machine's last start.
    pub fn find(identity: &TreeIdentity) -> Option<Self> {
        if let (Some(then), Some(now)) = (&identity.boot, table::boot())
            && *then != now
        {
            return None;
        }
        Some(Self {
            leader: Pid::from_raw(identity.leader)?,
            started: identity.started,
            mark: identity.mark.clone(),
            keeper: identity.keeper,
            // The record may be old: only the leader itself proves it.
            owns_group: identity.started.is_some() && table::started(identity.leader) == identity.started,
            seen: HashSet::new(),
        })
    }

    /// The living processes of the tree, without zombies. Reads the process table: not for hot paths.
    pub fn living(&mut self) -> Vec<u32> {
        self.look().0
    }

    /// The living processes, and the leader's id if the group with this number is known to be its own.
    ///
    /// It is known while the leader exists with the same start time, or any other known process is in the group; and
    /// from then on until the group is empty: a number is not reused while a group has it.
    fn look(&mut self) -> (Vec<u32>, Option<i32>) {
        let table = table::read(&self.mark);
        let number = self.leader.as_raw_nonzero().get();
        let is_leader =
            |process: &table::Process| process.pid == number && Some(process.started) == self.started;
        let is_known = |process: &table::Process| {
            is_leader(process) || process.marked || self.seen.contains(&(process.pid, process.started))
        };
        let mut group = table.iter().filter(|process| process.group == number).peekable();
        let recycled = table
            .iter()
            .any(|process| process.pid == number && !is_leader(process));
        let owns_group = !recycled && group.peek().is_some() && (self.owns_group || group.any(is_known));
        let leader = owns_group.then_some(number);
        let keeper = self
            .keeper
            .filter(|keeper| table.iter().any(|process| keeper.is(process)));
        let keeper = keeper.map(|keeper| keeper.pid);
        let mut members: HashSet<i32> = HashSet::new();
        for process in &table {
            if is_known(process) || Some(process.group) == leader || Some(process.parent) == keeper {
                members.insert(process.pid);
            }
        }
        self.owns_group = owns_group;
        // Children of members are members; the table is not ordered, so repeat until nothing new is found.
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
        if let Some(keeper) = keeper {
            members.remove(&keeper);
        }
        let mut living = Vec::new();
        for process in table.iter().filter(|process| members.contains(&process.pid)) {
            self.seen.insert((process.pid, process.started));
            if !process.zombie {
                living.extend(u32::try_from(process.pid));
            }
        }
        (living, leader)
    }

    /// Asks all processes of the tree to end. Returns their number.
    pub fn terminate(&mut self) -> usize {
        self.signal(Signal::TERM)
    }

    /// Kills all processes of the tree. Returns their number.
    pub fn kill(&mut self) -> usize {
        self.signal(Signal::KILL)
    }

    /// Kills all processes of the tree, and then also its keeper if that has not exited.
    pub fn kill_with_keeper(&mut self) -> usize {
        let count = self.kill();
        self.signal_keeper(Signal::KILL);
        count
    }

    fn signal_keeper(&self, signal: Signal) {
        if let Some(keeper) = self.keeper
            && table::started(keeper.pid) == Some(keeper.started)
            && let Some(pid) = Pid::from_raw(keeper.pid)
            && let Err(error) = kill_process(pid, signal)
        {
            tracing::trace!(%error, ?pid, "the keeper has gone");
        }
    }

    fn signal(&mut self, signal: Signal) -> usize {
        let (living, leader) = self.look();
        // The group first, in one system call: processes that it forks in the meantime are in the group, too.
        if leader.is_some()
            && let Err(error) = kill_process_group(self.leader, signal)
        {
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
        // A stopped process does not report the exit of its children.
        self.signal_keeper(Signal::CONT);
        living.len()
    }
}

/// A [`Tree`] for asynchronous code.
#[derive(Debug, Clone)]
pub struct SharedTree(Arc<Mutex<Tree>>);

impl SharedTree {
    /// Wraps `tree`.
    pub fn new(tree: Tree) -> Self {
        Self(Arc::new(Mutex::new(tree)))
    }

    /// Asks all processes of the tree to end.
    pub async fn terminate(&self) {
        self.with(Tree::terminate).await;
    }

    /// Kills all processes of the tree.
    pub async fn kill(&self) {
        self.with(Tree::kill).await;
    }

    /// Kills all processes of the tree, and then also its keeper if that has not exited.
    pub async fn kill_with_keeper(&self) {
        self.with(Tree::kill_with_keeper).await;
    }

    /// The number of living processes.
    pub async fn living(&self) -> usize {
        self.with(|tree| tree.living().len()).await
    }

    /// As [`kill`](Self::kill), without waiting.
    pub fn kill_now(&self) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).kill();
    }

    /// Runs off the runtime's threads: reading the process table takes milliseconds, and many agents may end at once.
    async fn with(&self, work: impl FnOnce(&mut Tree) -> usize + Send + 'static) -> usize {
        let tree = Arc::clone(&self.0);
        let work = move || work(&mut tree.lock().unwrap_or_else(PoisonError::into_inner));
        tokio::task::spawn_blocking(work).await.unwrap_or_else(|error| {
            tracing::warn!(%error, "looking for the agent's processes failed");
            0
        })
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

    /// The machine's boot id.
    pub(super) fn boot() -> Option<String> {
        let name = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
        Some(name.trim().to_owned())
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

    /// The process's start time, in clock ticks.
    pub(super) fn started(pid: i32) -> Option<u64> {
        process(pid, b"").map(|process| process.started)
    }

    fn process(pid: i32, needle: &[u8]) -> Option<Process> {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        // The name is in brackets and may contain brackets: the fields follow the last one.
        let mut fields = stat.rsplit_once(')')?.1.split_ascii_whitespace();
        let state = fields.next()?;
        let parent = fields.next()?.parse().ok()?;
        let group = fields.next()?.parse().ok()?;
        // After the group (field 5), the start time is field 22.
        let started = fields.nth(16)?.parse().ok()?;
        // Processes of other users can't be read, and can't be ours.
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
    use std::process::Stdio;

    pub(super) struct Process {
        pub(super) pid: i32,
        pub(super) parent: i32,
        pub(super) group: i32,
        pub(super) started: u64,
        pub(super) zombie: bool,
        pub(super) marked: bool,
    }

    /// Start times are absolute there, so they don't repeat.
    pub(super) fn boot() -> Option<String> {
        None
    }

    pub(super) fn read(_mark: &str) -> Vec<Process> {
        let Ok(ps) = std::process::Command::new("ps")
            .args(["-axo", "pid=,ppid=,pgid=,stat=,lstart="])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
        else {
            return Vec::new();
        };
        // A child of the caller, which would be taken for an orphan of the run.
        let own = i32::try_from(ps.id()).unwrap_or(0);
        let Ok(output) = ps.wait_with_output() else {
            return Vec::new();
        };
        String::from_utf8_lossy(&output.stdout)
            .lines()
            .filter_map(process)
            .filter(|process| process.pid != own)
            .collect()
    }

    /// The process's start time in the system's units.
    pub(super) fn started(pid: i32) -> Option<u64> {
        read("")
            .into_iter()
            .find(|process| process.pid == pid)
            .map(|process| process.started)
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

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests {
    use std::io::{BufRead as _, BufReader};
    use std::os::unix::process::CommandExt as _;
    use std::process::{Child, Command, Stdio};

    use super::*;

    /// Starts a script that leads its own group; returns the first line that it wrote, too.
    fn leader(script: &str, mark: Option<&str>) -> (Child, i32) {
        let mut command = Command::new("/bin/sh");
        command
            .args(["-c", script])
            .stdout(Stdio::piped())
            .process_group(0);
        if let Some(mark) = mark {
            command.env(RUN_MARK, mark);
        }
        let mut child = command.spawn().unwrap();
        let mut line = String::new();
        let output = child.stdout.take().unwrap();
        BufReader::new(output).read_line(&mut line).unwrap();
        (child, line.trim().parse().unwrap())
    }

    /// Leaves a process in its group, and ends.
    const LEAVES_ONE: &str = "sleep 600 > /dev/null & echo $!";

    fn is_alive(pid: i32) -> bool {
        table::read("")
            .iter()
            .any(|process| process.pid == pid && !process.zombie)
    }

    fn identity(leader: u32, started: u64, mark: &str) -> TreeIdentity {
        // In the form of an earlier version.
        let json = format!(r#"{{"leader":{leader},"started":{started},"mark":"{mark}"}}"#);
        serde_json::from_str(&json).unwrap()
    }

    fn end(pid: i32) {
        kill_process(Pid::from_raw(pid).unwrap(), Signal::KILL).unwrap();
    }

    #[test]
    fn the_group_of_a_reused_pid_is_left_alone() {
        let (mut somebody, left) = leader(LEAVES_ONE, None);
        somebody.wait().unwrap();
        let mut tree = Tree::find(&identity(somebody.id(), 1, "tree-used-again")).unwrap();
        assert_eq!(tree.kill(), 0);
        assert!(is_alive(left), "somebody else's process was killed");
        end(left);
    }

    #[test]
    fn a_process_with_the_mark_identifies_its_group() {
        let script = "env -u CLAUDE_AGENT_RUN sleep 600 > /dev/null & echo $!; sleep 600 > /dev/null &";
        let (mut agent, unmarked) = leader(script, Some("tree-vouches"));
        agent.wait().unwrap();
        let mut tree = Tree::find(&identity(agent.id(), 1, "tree-vouches")).unwrap();
        // A mark can't be seen for the moment in which a process executes another program.
        while tree.living().len() < 2 {
            std::thread::yield_now();
        }
        assert_eq!(tree.kill(), 2);
        // Killed processes need a moment to disappear.
        while is_alive(unmarked) || !tree.living().is_empty() {
            std::thread::yield_now();
        }
    }

    #[test]
    fn leftovers_in_a_group_are_ended_if_the_leader_was_known() {
        let script = "env -u CLAUDE_AGENT_RUN sleep 600 > /dev/null & echo $!";
        for found in [false, true] {
            let (mut agent, unmarked) = leader(script, Some("tree-left"));
            // It may have ended, but nobody has reaped it: its number is still its own.
            let mut tree = Tree::new(Pid::from_child(&agent), "tree-left");
            if found {
                tree = Tree::find(&tree.identity()).unwrap();
            }
            agent.wait().unwrap();
            assert_eq!(tree.kill(), 1);
            while is_alive(unmarked) {
                std::thread::yield_now();
            }
            assert_eq!(tree.living(), Vec::<u32>::new());
        }
    }

    #[test]
    fn processes_from_before_a_reboot_are_not_found() {
        let (mut agent, _) = leader("echo $$; read line", Some("tree-boot"));
        let mut identity = Tree::new(Pid::from_child(&agent), "tree-boot").identity();
        assert!(identity.boot.is_some());
        assert!(Tree::find(&identity).is_some());
        identity.boot = Some("another".to_owned());
        assert!(Tree::find(&identity).is_none());
        identity.boot = None;
        assert!(Tree::find(&identity).is_some(), "as in files of earlier versions");
        agent.kill().unwrap();
        agent.wait().unwrap();
    }

    #[test]
    fn children_of_a_process_with_the_keepers_reused_pid_are_left_alone() {
        let (mut somebody, child) = leader("sleep 600 > /dev/null & echo $!; wait", None);
        let pid = i32::try_from(somebody.id()).unwrap();
        let mut identity = identity(1, 1, "tree-keeper");
        assert_eq!(identity.keeper, None, "as in files of earlier versions");
        let started = table::started(pid).unwrap();
        identity.keeper = Some(ProcessIdentity {
            pid,
            started: started - 1,
        });
        assert_eq!(Tree::find(&identity).unwrap().living(), Vec::<u32>::new());
        identity.keeper = Some(ProcessIdentity { pid, started });
        let mut tree = Tree::find(&identity).unwrap();
        assert_eq!(
            tree.living(),
            [child.cast_unsigned()],
            "its children, and not itself"
        );
        assert_eq!(tree.kill(), 1);
        somebody.wait().unwrap();
        assert!(!is_alive(child));
    }
}
