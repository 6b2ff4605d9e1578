//! Splits bytes into lines.
//!
//! Owns the rule that a message is a line, and the maximum length of a line. Does not know JSON.

use std::io;

use bytes::{Buf, Bytes, BytesMut};
use futures_util::Stream;
use tokio::io::{AsyncRead, AsyncReadExt};

/// The maximum length of a line. A longer line is skipped, so that one huge tool result can't take all memory of the
/// process.
pub const MAX_LINE: usize = 16 * 1024 * 1024;

/// How much is read from the operating system at once: the size of a pipe's buffer on Linux.
const READ_SIZE: usize = 64 * 1024;

/// A line of the agent's output, or the notice that one was skipped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Frame {
    /// A line without its line ending, not checked in any way. It shares the memory of everything that was read with
    /// it, so it should not be kept for long.
    Line(Bytes),
    /// A line that was longer than the limit. `length` counts all of its bytes.
    Oversized {
        /// How long the skipped line was.
        length: u64,
    },
}

/// A frame and its position.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Located {
    /// The frame.
    pub frame: Frame,
    /// The number of bytes before the end of this frame. A reader that continues there misses nothing and gets nothing
    /// twice.
    pub end: u64,
}

/// Splits a stream of bytes into lines, however the bytes are split.
///
/// A line ends with `\n` (a `\r` before it is dropped) or with the end of the stream. Empty lines are skipped.
///
/// ```
/// use tiller_process::{Frame, Framer};
///
/// let mut framer = Framer::new(16);
/// framer.push(b"{\"a\":1}\n{\"b\"");
/// assert_eq!(framer.next_frame(), Some(Frame::Line("{\"a\":1}".into())));
/// assert_eq!(framer.next_frame(), None);
/// framer.push(b":2}\nthis line is longer than sixteen bytes\n");
/// assert_eq!(framer.next_frame(), Some(Frame::Line("{\"b\":2}".into())));
/// assert_eq!(framer.next_frame(), Some(Frame::Oversized { length: 38 }));
/// ```
#[derive(Debug)]
pub struct Framer {
    buffer: BytesMut,
    /// How much of `buffer` has no line ending, so that a long line is searched only once.
    searched: usize,
    /// The discarded bytes of an oversized line; `None` while the line is within the limit.
    skipped: Option<u64>,
    limit: usize,
    /// The number of bytes that were framed.
    position: u64,
}

impl Default for Framer {
    fn default() -> Self {
        Self::new(MAX_LINE)
    }
}

impl Framer {
    /// A framer that skips lines of more than `limit` bytes.
    pub fn new(limit: usize) -> Self {
        Self {
            buffer: BytesMut::new(),
            searched: 0,
            skipped: None,
            limit,
            position: 0,
        }
    }

    /// As [`Self::new`], for a stream that is read from `position` on.
    pub fn starting_at(position: u64, limit: usize) -> Self {
        Self {
            position,
            ..Self::new(limit)
        }
    }

    /// The number of bytes before the end of the last frame.
    pub fn position(&self) -> u64 {
        self.position
    }

    /// Adds bytes.
    pub fn push(&mut self, bytes: &[u8]) {
        self.buffer.extend_from_slice(bytes);
    }

    /// The next whole line, if one is complete.
    pub fn next_frame(&mut self) -> Option<Frame> {
        loop {
            let Some(found) = memchr::memchr(b'\n', &self.buffer[self.searched..]) else {
                self.searched = self.buffer.len();
                // One byte more than the limit may be a `\r` that belongs to the line ending.
                if self.buffer.len() > self.limit + 1 || self.skipped.is_some() {
                    *self.skipped.get_or_insert(0) += self.buffer.len() as u64;
                    self.position += self.buffer.len() as u64;
                    self.buffer.clear();
                    self.searched = 0;
                }
                return None;
            };
            let end = self.searched + found;
            self.searched = 0;
            let frame = self.take(end);
            self.buffer.advance(1);
            self.position += 1;
            if frame.is_some() {
                return frame;
            }
        }
    }

    /// All lines that are complete.
    pub fn frames(&mut self) -> Vec<Located> {
        let mut frames = Vec::new();
        while let Some(frame) = self.next_frame() {
            frames.push(self.locate(frame));
        }
        frames
    }

    /// Adds the position to the frame that was taken last.
    pub fn locate(&self, frame: Frame) -> Located {
        let end = self.position;
        Located { frame, end }
    }

    /// The last line of an ended stream, if it has no line ending.
    pub fn finish(&mut self) -> Option<Frame> {
        self.searched = 0;
        let end = self.buffer.len();
        self.take(end)
    }

    /// Takes the first `end` bytes of the buffer as a line; the line ending stays.
    fn take(&mut self, end: usize) -> Option<Frame> {
        self.position += end as u64;
        if let Some(skipped) = self.skipped.take() {
            self.buffer.advance(end);
            return Some(Frame::Oversized {
                length: skipped + end as u64,
            });
        }
        let line = &self.buffer[..end];
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        let length = line.len();
        let frame = if length > self.limit {
            // With the `\r`, as where the line was too long before its end came: the same bytes give the same frame.
            Some(Frame::Oversized { length: end as u64 })
        } else if length == 0 {
            None
        } else {
            let mut line = self.buffer.split_to(end);
            line.truncate(length);
            return Some(Frame::Line(line.freeze()));
        };
        self.buffer.advance(end);
        frame
    }
}

/// The lines of a pipe until its end, in batches as they arrive. A read error also ends the stream.
pub fn lines<R>(reader: R, limit: usize) -> impl Stream<Item = Vec<Located>> + Send
where
    R: AsyncRead + Unpin + Send,
{
    let state = Lines {
        reader,
        framer: Framer::new(limit),
        ended: false,
    };
    futures_util::stream::unfold(state, |mut state| async move {
        let frames = state.next().await?;
        Some((frames, state))
    })
}

struct Lines<R> {
    reader: R,
    framer: Framer,
    ended: bool,
}

impl<R: AsyncRead + Unpin> Lines<R> {
    async fn next(&mut self) -> Option<Vec<Located>> {
        loop {
            let frames = self.framer.frames();
            if !frames.is_empty() {
                return Some(frames);
            }
            if self.ended {
                return None;
            }
            match self.read().await {
                Ok(0) => {
                    self.ended = true;
                    if let Some(frame) = self.framer.finish() {
                        return Some(vec![self.framer.locate(frame)]);
                    }
                }
                Ok(_) => {}
                Err(error) => {
                    tracing::debug!(%error, "reading the agent's output failed");
                    self.ended = true;
                }
            }
        }
    }

    async fn read(&mut self) -> io::Result<usize> {
        self.framer.buffer.reserve(READ_SIZE);
        self.reader.read_buf(&mut self.framer.buffer).await
    }
}
