//! Reads a file line by line in bounded memory.
//!
//! Every read goes to the same page-aligned position of one buffer: the kernel copies into aligned memory several times
//! faster. The rest of a line at the end of a read is moved in front of that position, so every line is one slice. It
//! does not know what lines contain.

use std::io::{self, Read, Seek, SeekFrom};

const PAGE: usize = 4096;
/// Small enough for a core's cache, and large enough that few lines cross two reads.
const READ: usize = 256 * 1024;

/// Longer lines are skipped: the CLI writes nothing near this size, and memory must stay bounded.
pub(crate) const MAX_LINE: usize = 32 * 1024 * 1024;

/// A read buffer, reused for one file after another.
pub(crate) struct Buffer {
    bytes: Vec<u8>,
    /// Where reads go; page-aligned, with space for the rest of a line before it.
    base: usize,
}

impl Default for Buffer {
    fn default() -> Self {
        Self::with_room(READ)
    }
}

impl Buffer {
    fn with_room(room: usize) -> Self {
        let bytes = vec![0; room + READ + PAGE];
        let base = room + bytes[room..].as_ptr().align_offset(PAGE).min(PAGE - 1);
        Self { bytes, base }
    }

    /// Makes space for `needed` bytes before the position of reads, keeping `keep`.
    fn grow(&mut self, needed: usize, keep: std::ops::Range<usize>) -> usize {
        let mut larger = Self::with_room(needed.max(self.base * 2));
        let start = larger.base - keep.len();
        larger.bytes[start..larger.base].copy_from_slice(&self.bytes[keep]);
        *self = larger;
        start
    }

    /// Releases the memory of a very long line.
    fn shrink(&mut self) {
        if self.bytes.len() > 8 * READ {
            *self = Self::default();
        }
    }
}

/// One line of a file, without its newline.
pub(crate) enum Line<'a> {
    Whole {
        offset: u64,
        bytes: &'a [u8],
    },
    /// The last line has no newline yet: its writer may be at work.
    Unfinished {
        offset: u64,
        bytes: &'a [u8],
    },
    TooLong,
}

/// Calls `each` for every line from `offset` on. `each` returns false to stop. Returns the offset after the last whole
/// line.
pub(crate) fn read_lines(
    file: &mut (impl Read + Seek),
    offset: u64,
    buffer: &mut Buffer,
    each: impl FnMut(Line<'_>) -> bool,
) -> io::Result<u64> {
    take_lines(file, offset, buffer, |_, _| None, each)
}

/// As [`read_lines`], but first offers the bytes at each line's beginning to `take`: a parser finds the line's end
/// anyway, so it need not be searched for. `take` returns the length that it consumed, newline included, or `None` to
/// get the line through `each`.
pub(crate) fn take_lines(
    file: &mut (impl Read + Seek),
    offset: u64,
    buffer: &mut Buffer,
    mut take: impl FnMut(u64, &[u8]) -> Option<usize>,
    mut each: impl FnMut(Line<'_>) -> bool,
) -> io::Result<u64> {
    buffer.shrink();
    file.seek(SeekFrom::Start(offset))?;
    // `position` is the file offset of `start`, the first byte of the current line.
    let mut position = offset;
    let mut start = buffer.base;
    // The bytes of a too long line that are no longer in the buffer.
    let mut dropped = None::<u64>;
    loop {
        let base = buffer.base;
        let count = match file.read(&mut buffer.bytes[base..base + READ]) {
            Ok(count) => count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        let end = base + count;
        if count == 0 {
            if start < base && dropped.is_none() {
                each(Line::Unfinished {
                    offset: position,
                    bytes: &buffer.bytes[start..base],
                });
            }
            return Ok(position);
        }
        // After the last line that ends here. `take` never sees the beginning of the next line, which it would have to
        // read again.
        let whole = memchr::memrchr(b'\n', &buffer.bytes[base..end]).map_or(start, |last| base + last + 1);
        while start < whole {
            if dropped.is_none()
                && let Some(length) = take(position, &buffer.bytes[start..whole])
            {
                position += length as u64;
                start += length;
                continue;
            }
            // The bytes before this read have no newline.
            let from = start.max(base);
            let newline =
                memchr::memchr(b'\n', &buffer.bytes[from..whole]).map_or(whole, |found| from + found);
            let go_on = match dropped {
                Some(_) => each(Line::TooLong),
                None => each(Line::Whole {
                    offset: position,
                    bytes: &buffer.bytes[start..newline],
                }),
            };
            position += dropped.take().unwrap_or(0) + (newline - start) as u64 + 1;
            start = newline + 1;
            if !go_on {
                return Ok(position);
            }
        }
        // The rest is the beginning of the next line.
        let left = end - start;
        if dropped.is_some() || left > MAX_LINE {
            dropped = Some(dropped.unwrap_or(0) + left as u64);
            start = base;
        } else if left <= base {
            buffer.bytes.copy_within(start..end, base - left);
            start = base - left;
        } else {
            start = buffer.grow(left, start..end);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Cursor;

    fn lines(text: &[u8], from: u64) -> (Vec<(u64, Vec<u8>)>, u64, usize) {
        let mut found = Vec::new();
        let mut long = 0;
        let end = read_lines(&mut Cursor::new(text), from, &mut Buffer::default(), |line| {
            match line {
                Line::Whole { offset, bytes } => found.push((offset, bytes.to_vec())),
                Line::Unfinished { offset, bytes } => found.push((offset, [b"~", bytes].concat())),
                Line::TooLong => long += 1,
            }
            true
        })
        .unwrap();
        (found, end, long)
    }

    #[test]
    fn gives_every_line_with_its_offset_whatever_its_length() {
        let sizes = [
            0,
            1,
            5,
            4095,
            4096,
            READ - 1,
            READ,
            READ + 1,
            3,
            3 * READ,
            7,
            900_000,
            0,
            2,
        ];
        let mut text = Vec::new();
        let mut expected = Vec::new();
        for (number, size) in sizes.into_iter().enumerate() {
            let line = vec![b'a' + u8::try_from(number).unwrap(); size];
            expected.push((text.len() as u64, line.clone()));
            text.extend(line);
            text.push(b'\n');
        }
        let (found, end, _) = lines(&text, 0);
        assert!(found == expected);
        assert_eq!(end, text.len() as u64);

        let (rest, _, _) = lines(&text, expected[5].0);
        assert!(rest == expected[5..]);
    }

    #[test]
    fn an_unfinished_line_is_marked_and_not_passed() {
        let (found, end, _) = lines(b"one\ntwo", 0);
        assert_eq!(found, [(0, b"one".to_vec()), (4, b"~two".to_vec())]);
        assert_eq!(end, 4);
    }

    #[test]
    fn a_line_beyond_the_limit_is_skipped() {
        let mut text = b"first\n".to_vec();
        text.extend(vec![b'x'; MAX_LINE + READ + 10]);
        text.extend(b"\nlast\n");
        let (found, end, long) = lines(&text, 0);
        assert_eq!(found.len(), 2);
        assert_eq!(found[1], ((text.len() - 5) as u64, b"last".to_vec()));
        assert_eq!((end, long), (text.len() as u64, 1));
    }
}
