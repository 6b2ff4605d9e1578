//! Reports when transcripts appear, grow or disappear, written by a terminal, an IDE or any other tool.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use notify::{EventKind, RecommendedWatcher, RecursiveMode, Watcher as _};
use serde::Serialize;
use ts_rs::TS;

use crate::error::{HistoryError, Result};
use crate::history::History;
use crate::read::place::{ProjectId, SessionId};

/// Changes within this time of the first one are reported together: long enough for the lines of one step, too short to
/// notice. It is not counted from the last write, because busy agents never pause.
const TOGETHER: Duration = Duration::from_millis(100);

/// A change of the history. Clients ask again for the details, which reads only what is new.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, TS)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(tag = "kind", rename_all = "snake_case")]
#[ts(export_to = "history.ts")]
pub enum Change {
    /// A session appeared or grew, or one of its subagents did.
    Session { project: ProjectId, session: SessionId },
    /// A session's transcript is gone.
    Gone { project: ProjectId, session: SessionId },
    /// More changed than can be listed: treat everything as changed.
    Everything,
}

/// Watches the transcripts until it is dropped.
pub struct Watch {
    sender: Sender<Signal>,
    thread: Option<JoinHandle<()>>,
}

enum Signal {
    Event(notify::Result<notify::Event>),
    Stop,
}

impl History {
    /// Calls `changed`, on its own thread, whenever transcripts change. The folder of projects may be created later.
    pub fn watch(&self, mut changed: impl FnMut(Vec<Change>) + Send + 'static) -> Result<Watch> {
        let (sender, receiver) = channel();
        let events = sender.clone();
        let watcher = notify::recommended_watcher(move |event| {
            // The receiver is gone only while the watch is being dropped.
            drop(events.send(Signal::Event(event)));
        })
        .map_err(as_io)?;
        let mut watched = Watched {
            watcher,
            root: self.projects.path().to_owned(),
            place: None,
        };
        // Before this returns: every later write is reported.
        watched.look()?;
        let thread = std::thread::Builder::new()
            .name("history-watch".into())
            .spawn(move || run(&mut watched, &receiver, &mut changed))
            .map_err(HistoryError::Io)?;
        Ok(Watch {
            sender,
            thread: Some(thread),
        })
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        // Without a receiver the thread has already ended.
        drop(self.sender.send(Signal::Stop));
        if let Some(thread) = self.thread.take() {
            // The thread itself has reported a panic in `changed`.
            drop(thread.join());
        }
    }
}

fn as_io(error: notify::Error) -> HistoryError {
    HistoryError::Io(std::io::Error::other(error))
}

/// The watched folder: the folder of projects or, before that exists, the nearest existing folder above it.
struct Watched {
    watcher: RecommendedWatcher,
    root: PathBuf,
    place: Option<PathBuf>,
}

impl Watched {
    /// Watches the right folder. True if that is the folder of projects, and was not before.
    fn look(&mut self) -> Result<bool> {
        // A folder may be created or deleted between the check and the watch: repeat until the check holds.
        for _ in 0..16 {
            let nearest = self
                .root
                .ancestors()
                .find(|folder| folder.is_dir())
                .unwrap_or(Path::new("/"))
                .to_owned();
            if self.place.as_ref() == Some(&nearest) {
                return Ok(false);
            }
            if let Some(old) = self.place.take() {
                // The folder may be gone, and its watch with it.
                drop(self.watcher.unwatch(&old));
            }
            let whole = nearest == self.root;
            let mode = if whole {
                RecursiveMode::Recursive
            } else {
                RecursiveMode::NonRecursive
            };
            match self.watcher.watch(&nearest, mode) {
                Ok(()) => self.place = Some(nearest),
                Err(error) if matches!(error.kind, notify::ErrorKind::PathNotFound) => continue,
                Err(error) => return Err(as_io(error)),
            }
            if whole {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

fn run(watched: &mut Watched, receiver: &Receiver<Signal>, changed: &mut impl FnMut(Vec<Change>)) {
    loop {
        let mut changes = BTreeSet::new();
        let mut moved = false;
        let mut until: Option<Instant> = None;
        loop {
            let signal = match until {
                None => receiver.recv().map_err(|_| RecvTimeoutError::Disconnected),
                Some(until) => receiver.recv_timeout(until.saturating_duration_since(Instant::now())),
            };
            match signal {
                Ok(Signal::Event(event)) => {
                    moved |= note(event, watched, &mut changes);
                    until.get_or_insert_with(|| Instant::now() + TOGETHER);
                    if changes.len() >= 256 {
                        break;
                    }
                }
                Err(RecvTimeoutError::Timeout) => break,
                Ok(Signal::Stop) | Err(RecvTimeoutError::Disconnected) => return,
            }
        }
        if moved {
            match watched.look() {
                Ok(true) => drop(changes.insert(Change::Everything)),
                Ok(false) => {}
                Err(error) => tracing::warn!(%error, "the folder of transcripts can't be watched"),
            }
        }
        if changes.contains(&Change::Everything) {
            changes = BTreeSet::from([Change::Everything]);
        }
        if !changes.is_empty() {
            changed(changes.into_iter().collect());
        }
    }
}

/// Records the change of an event. True if the watched folder may no longer be the right one.
fn note(event: notify::Result<notify::Event>, watched: &Watched, changes: &mut BTreeSet<Change>) -> bool {
    let event = match event {
        Ok(event) => event,
        Err(error) => {
            tracing::warn!(%error, "watching transcripts missed something");
            changes.insert(Change::Everything);
            return true;
        }
    };
    if event.need_rescan() {
        changes.insert(Change::Everything);
    }
    if matches!(event.kind, EventKind::Access(_)) {
        return false;
    }
    let mut moved = watched.place.as_deref() != Some(&watched.root);
    for path in &event.paths {
        let Ok(inside) = path.strip_prefix(&watched.root) else {
            continue;
        };
        let parts: Vec<&str> = inside.iter().filter_map(|part| part.to_str()).collect();
        match parts.as_slice() {
            [] => moved = true,
            // A whole project was created or deleted; files in a new folder may have been written before it was
            // watched.
            [_] => drop(changes.insert(Change::Everything)),
            [project, file, ..] => {
                let stem = file.strip_suffix(".jsonl").unwrap_or(file);
                if let (Ok(project), Ok(session)) = (ProjectId::parse(project), SessionId::parse(stem)) {
                    let is_gone = parts.len() == 2 && stem.len() < file.len() && !path.exists();
                    changes.insert(if is_gone {
                        Change::Gone { project, session }
                    } else {
                        Change::Session { project, session }
                    });
                }
            }
        }
    }
    moved
}
