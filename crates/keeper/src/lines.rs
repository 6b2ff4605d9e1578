//! Reads a kept agent's output as lines.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tiller_process::{Ended, Framer, Located, MAX_LINE, SharedTree};
use tokio::io::AsyncReadExt;
use tokio::net::unix::OwnedReadHalf;
use tokio::sync::{oneshot, watch};

use crate::files::{ExitFile, read_exit};
use crate::output::OutputReader;
use crate::wire::{Frames, Report};

/// How much of the output is read at once.
const READ: usize = 64 * 1024;

/// The agent's lines, from its files.
///
/// The reader of the lines also receives the keeper's reports, in the same task: "there is more output" is reported for
/// every event, and passing it between tasks would cost more than everything else here.
pub(crate) struct Output {
    folder: PathBuf,
    reader: OutputReader,
    framer: Framer,
    buffer: Vec<u8>,
    /// How much output there is, as far as known.
    end: u64,
    /// `None`: the keeper has gone, and there is nothing to wait for.
    keeper: Option<KeeperReports>,
    ended: watch::Sender<Option<Ended>>,
    /// Sent once everything was read that existed at first.
    caught_up: Option<oneshot::Sender<()>>,
}

impl Output {
    pub(crate) fn new(
        folder: &Path,
        position: u64,
        end: u64,
        keeper: Option<KeeperReports>,
        ended: watch::Sender<Option<Ended>>,
        caught_up: Option<oneshot::Sender<()>>,
    ) -> Self {
        Self {
            folder: folder.to_owned(),
            reader: OutputReader::new(folder, position),
            framer: Framer::starting_at(position, MAX_LINE),
            buffer: vec![0; READ],
            end,
            keeper,
            ended,
            caught_up,
        }
    }

    pub(crate) async fn next(&mut self) -> Option<Vec<Located>> {
        loop {
            let lines = self.framer.frames();
            if !lines.is_empty() {
                return Some(lines);
            }
            let ended = self.ended.borrow().is_some();
            if self.reader.position() < self.end || ended {
                match self.reader.read(&mut self.buffer) {
                    Ok(0) if ended => {
                        let frame = self.framer.finish()?;
                        return Some(vec![self.framer.locate(frame)]);
                    }
                    Ok(0) => {}
                    Ok(count) => {
                        self.framer.push(&self.buffer[..count]);
                        continue;
                    }
                    Err(error) => {
                        tracing::error!(%error, "the agent's output can't be read");
                        self.give_up().await;
                        return None;
                    }
                }
            }
            // A reader that asks for more has processed everything before.
            if let Some(caught_up) = self.caught_up.take() {
                // The receiver may have been dropped.
                caught_up.send(()).ok();
            }
            self.receive_report().await;
        }
    }

    /// Waits for the keeper's next report and applies it.
    async fn receive_report(&mut self) {
        let news = match &mut self.keeper {
            Some(keeper) => next_report(&mut keeper.connection, &mut keeper.frames).await,
            None => Ok(None),
        };
        match news {
            Ok(Some(Report::Wrote { end })) => self.end = end,
            Ok(Some(Report::Exited { ended, end })) => {
                self.end = end;
                self.ended.send_replace(Some(ended));
            }
            Ok(Some(Report::Running { .. } | Report::NotStarted { .. })) => {}
            Ok(Some(Report::Replaced)) => {
                tracing::warn!("another program has taken over an agent of ours");
                self.ended.send_replace(Some(unknown_end()));
            }
            Ok(None) | Err(_) => {
                tracing::warn!("an agent's keeper has gone");
                self.give_up().await;
            }
        }
    }

    /// No more output can be read, so the agent must not continue.
    async fn give_up(&mut self) {
        if let Some(tree) = self.keeper.take().and_then(|keeper| keeper.tree) {
            tree.kill().await;
        }
        self.ended.send_if_modified(|ended| {
            let news = ended.is_none();
            ended.get_or_insert_with(|| end_on_record(read_exit(&self.folder)));
            news
        });
    }
}

/// The reports of a keeper.
pub(crate) struct KeeperReports {
    pub(crate) connection: OwnedReadHalf,
    pub(crate) frames: Frames,
    pub(crate) tree: Option<SharedTree>,
}

pub(crate) async fn next_report(
    connection: &mut OwnedReadHalf,
    frames: &mut Frames,
) -> io::Result<Option<Report>> {
    let mut buffer = [0; 4096];
    loop {
        while let Some((kind, body)) = frames.next()? {
            if let Some(news) = Report::decode(kind, body)? {
                return Ok(Some(news));
            }
        }
        match connection.read(&mut buffer).await? {
            0 => return Ok(None),
            count => frames.push(&buffer[..count]),
        }
    }
}

/// How an agent ended, according to its keeper's file.
pub(crate) fn end_on_record(exit: Option<ExitFile>) -> Ended {
    match exit {
        Some(exit) => Ended {
            code: exit.code,
            signal: exit.signal,
            stderr_tail: exit.stderr,
            uptime: Duration::from_millis(exit.uptime_ms),
        },
        None => unknown_end(),
    }
}

/// Neither the keeper nor its files tell how the agent ended.
fn unknown_end() -> Ended {
    Ended {
        code: None,
        signal: None,
        stderr_tail: String::new(),
        // Long enough that it does not count as a failed start.
        uptime: Duration::MAX,
    }
}
