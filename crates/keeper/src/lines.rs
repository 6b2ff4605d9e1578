//! What a kept agent says, as lines.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tiller_process::{Ended, Framer, Located, MAX_LINE, SharedTree};
use tokio::io::AsyncReadExt;
use tokio::net::unix::OwnedReadHalf;
use tokio::sync::{oneshot, watch};

use crate::files::{ExitFile, read_exit};
use crate::output::OutputReader;
use crate::wire::{Frames, News};

/// How much of the output is read at once.
const READ: usize = 64 * 1024;

/// The agent's lines, from its files.
///
/// Whoever reads them also hears what the keeper tells, in the same task: that there is more is the one thing which
/// happens for every event, and to pass it from task to task would take longer than everything else that is done here.
pub(crate) struct Output {
    folder: PathBuf,
    reader: OutputReader,
    framer: Framer,
    buffer: Vec<u8>,
    /// How much output there is, as far as is known.
    end: u64,
    /// `None`: it is gone, and there is nothing to wait for.
    keeper: Option<Telling>,
    ended: watch::Sender<Option<Ended>>,
    /// Told, and gone, once everything has been read that was there at first.
    caught_up: Option<oneshot::Sender<()>>,
}

impl Output {
    pub(crate) fn new(
        folder: &Path,
        position: u64,
        end: u64,
        keeper: Option<Telling>,
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
                        tracing::error!(%error, "what the agent said can't be read");
                        self.give_up().await;
                        return None;
                    }
                }
            }
            // Whoever asks for more has taken all that came before.
            if let Some(caught_up) = self.caught_up.take() {
                // Not everybody wants to know.
                caught_up.send(()).ok();
            }
            self.hear().await;
        }
    }

    /// Waits for the keeper's next word, and notes it.
    async fn hear(&mut self) {
        let news = match &mut self.keeper {
            Some(keeper) => next_news(&mut keeper.connection, &mut keeper.frames).await,
            None => Ok(None),
        };
        match news {
            Ok(Some(News::Wrote { end })) => self.end = end,
            Ok(Some(News::Exited { ended, end })) => {
                self.end = end;
                self.ended.send_replace(Some(ended));
            }
            Ok(Some(News::Running { .. } | News::NotStarted { .. })) => {}
            Ok(Some(News::Replaced)) => {
                tracing::warn!("another program has taken over an agent of ours");
                self.ended.send_replace(Some(unknown_end()));
            }
            Ok(None) | Err(_) => {
                tracing::warn!("an agent's keeper went away");
                self.give_up().await;
            }
        }
    }

    /// Nothing more will be heard, so nothing may go on unheard.
    async fn give_up(&mut self) {
        if let Some(tree) = self.keeper.take().and_then(|keeper| keeper.tree) {
            tree.kill().await;
        }
        self.ended.send_if_modified(|ended| {
            let news = ended.is_none();
            ended.get_or_insert_with(|| left_word(read_exit(&self.folder)));
            news
        });
    }
}

/// A keeper that tells what happens.
pub(crate) struct Telling {
    pub(crate) connection: OwnedReadHalf,
    pub(crate) frames: Frames,
    pub(crate) tree: Option<SharedTree>,
}

pub(crate) async fn next_news(
    connection: &mut OwnedReadHalf,
    frames: &mut Frames,
) -> io::Result<Option<News>> {
    let mut buffer = [0; 4096];
    loop {
        while let Some((kind, body)) = frames.next()? {
            if let Some(news) = News::decode(kind, body)? {
                return Ok(Some(news));
            }
        }
        match connection.read(&mut buffer).await? {
            0 => return Ok(None),
            count => frames.push(&buffer[..count]),
        }
    }
}

/// How an agent ended, as far as its keeper has left word of it.
pub(crate) fn left_word(exit: Option<ExitFile>) -> Ended {
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

/// Neither the keeper nor its files tell.
fn unknown_end() -> Ended {
    Ended {
        code: None,
        signal: None,
        stderr_tail: String::new(),
        // Certainly no run that ended at once.
        uptime: Duration::MAX,
    }
}
