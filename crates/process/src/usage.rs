//! The process table: which processes run, since when, and what they use. From `/proc`; other systems report nothing.

use std::collections::HashMap;
use std::time::Duration;

/// The resources of a process tree.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Sample {
    pub memory_bytes: u64,
    /// Processor time so far, in clock ticks.
    ticks: u64,
}

impl Sample {
    /// The average share of a processor that was used since `before`.
    #[allow(clippy::cast_precision_loss, reason = "a rough figure for people")]
    pub fn cpu_since(&self, before: &Self, elapsed: Duration) -> f32 {
        // When a child ends, its time disappears from the sum.
        let ticks = self.ticks.saturating_sub(before.ticks) as f32;
        let seconds = ticks / rustix::param::clock_ticks_per_second() as f32;
        seconds / elapsed.as_secs_f32().max(0.001)
    }
}

#[derive(Debug)]
struct Process {
    sample: Sample,
    children: Vec<u32>,
}

#[derive(Debug)]
pub struct Processes(HashMap<u32, Process>);

impl Processes {
    pub fn read() -> Self {
        let page = rustix::param::page_size() as u64;
        let mut all: HashMap<u32, Process> = HashMap::new();
        let mut parents = Vec::new();
        let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
        for pid in entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok()) {
            if let Some((parent, sample)) = read(pid, page) {
                parents.push((parent, pid));
                let children = Vec::new();
                all.insert(pid, Process { sample, children });
            }
        }
        for (parent, pid) in parents {
            if let Some(parent) = all.get_mut(&parent) {
                parent.children.push(pid);
            }
        }
        Self(all)
    }

    /// For each root, the resources of the process and its descendants.
    pub fn trees(&self, roots: &[u32]) -> Vec<Sample> {
        roots.iter().map(|root| self.tree(*root)).collect()
    }

    fn tree(&self, root: u32) -> Sample {
        let mut total = Sample::default();
        let mut open = vec![root];
        while let Some(process) = open.pop().and_then(|pid| self.0.get(&pid)) {
            total.memory_bytes += process.sample.memory_bytes;
            total.ticks += process.sample.ticks;
            open.extend(&process.children);
        }
        total
    }
}

/// Whether a process is running. True if that can't be determined.
pub fn is_running(pid: u32) -> bool {
    !cfg!(target_os = "linux") || Stat::of(pid).is_some_and(|stat| !stat.is_zombie())
}

/// The line of `/proc/PID/stat`.
#[derive(Debug)]
pub struct Stat(String);

impl Stat {
    pub fn of(pid: u32) -> Option<Self> {
        std::fs::read_to_string(format!("/proc/{pid}/stat"))
            .ok()
            .map(Self)
    }

    /// The fields from the process's state on. The name before it is in brackets and may contain brackets.
    pub fn fields(&self) -> impl Iterator<Item = &str> {
        let after_name = self.0.rsplit_once(')').map_or("", |(_, rest)| rest);
        after_name.split_ascii_whitespace()
    }

    /// In clock ticks since the machine's start: together with the pid it identifies a process.
    pub fn started(&self) -> Option<u64> {
        self.fields().nth(19)?.parse().ok()
    }

    pub fn parent(&self) -> Option<u32> {
        self.fields().nth(1)?.parse().ok()
    }

    pub fn is_zombie(&self) -> bool {
        self.fields().next() == Some("Z")
    }
}

fn read(pid: u32, page: u64) -> Option<(u32, Sample)> {
    let stat = Stat::of(pid)?;
    let fields: Vec<&str> = stat.fields().collect();
    let number = |index: usize| fields.get(index)?.parse::<u64>().ok();
    Some((
        u32::try_from(number(1)?).ok()?,
        Sample {
            memory_bytes: number(21)? * page,
            ticks: number(11)? + number(12)?,
        },
    ))
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_counted_with_its_children() {
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let (processes, own, childs) = loop {
            let processes = Processes::read();
            let [own, childs] = processes.trees(&[std::process::id(), child.id()])[..] else {
                panic!("one for each");
            };
            // In its first moment a process uses nothing.
            if childs.memory_bytes > 0 {
                break (processes, own, childs);
            }
        };
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(own.memory_bytes > childs.memory_bytes);
        assert_eq!(processes.trees(&[u32::MAX]), [Sample::default()]);
    }
}
