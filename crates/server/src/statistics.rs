//! The load of the machine, measured once a second while somebody subscribes.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;

/// Shares from 0 to 1.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Load {
    pub(crate) cpu: f64,
    pub(crate) ram: f64,
    pub(crate) storage: f64,
}

const INTERVAL: Duration = Duration::from_secs(1);

/// Measures once for all subscribers, and not at all without any.
pub(crate) struct Statistics {
    /// A path on the disk to measure.
    path: PathBuf,
    load: watch::Sender<Option<Load>>,
}

impl Statistics {
    pub(crate) fn new(path: PathBuf) -> Self {
        Self {
            path,
            load: watch::Sender::new(None),
        }
    }

    pub(crate) fn watch(self: &Arc<Self>) -> watch::Receiver<Option<Load>> {
        let first = self.load.receiver_count() == 0;
        let receiver = self.load.subscribe();
        if first {
            let statistics = Arc::clone(self);
            tokio::task::spawn_blocking(move || statistics.measure());
        }
        receiver
    }

    fn measure(&self) {
        let mut machine = sysinfo::System::new();
        let mut disks = sysinfo::Disks::new_with_refreshed_list();
        machine.refresh_cpu_usage();
        while self.load.receiver_count() > 0 {
            // The CPU usage is a difference between two samples.
            std::thread::sleep(INTERVAL);
            machine.refresh_cpu_usage();
            machine.refresh_memory();
            disks.refresh(true);
            let disk = disk_of(&disks, &self.path).map(|disk| (disk.available_space(), disk.total_space()));
            self.load.send_replace(Some(Load {
                cpu: f64::from(machine.global_cpu_usage() / 100.0).clamp(0.0, 1.0),
                ram: share(machine.used_memory(), machine.total_memory()),
                storage: disk.map_or(0.0, |(free, total)| share(total.saturating_sub(free), total)),
            }));
        }
    }
}

#[expect(clippy::cast_precision_loss, reason = "a share need not be exact to the byte")]
fn share(part: u64, whole: u64) -> f64 {
    if whole == 0 {
        0.0
    } else {
        (part as f64 / whole as f64).clamp(0.0, 1.0)
    }
}

/// The disk that holds `path`.
pub(crate) fn disk_of<'a>(disks: &'a sysinfo::Disks, path: &std::path::Path) -> Option<&'a sysinfo::Disk> {
    let holding = disks.iter().filter(|disk| path.starts_with(disk.mount_point()));
    holding.max_by_key(|disk| disk.mount_point().components().count())
}
