//! Lines that nobody will read are not kept whole.
//!
//! A program skips a line of more than [`MAX_LINE`] bytes, but can't say that it needs no more of it before it has seen its end.
//! So the rest of such a line would fill the disk, and an agent that writes enough of it would wait for room for ever.

use std::borrow::Cow;

use tiller_process::MAX_LINE;

/// How much is kept of one line: so much that the program sees that it is too long.
const KEPT: u64 = 2 * MAX_LINE as u64;

/// Cuts lines short in what comes in pieces.
pub(crate) struct LongLines {
    limit: u64,
    /// How long the current line is by now, up to the limit.
    length: u64,
}

impl Default for LongLines {
    fn default() -> Self {
        Self {
            limit: KEPT,
            length: 0,
        }
    }
}

impl LongLines {
    /// What is to be kept of the next piece.
    pub(crate) fn cut<'a>(&mut self, piece: &'a [u8]) -> Cow<'a, [u8]> {
        if self.length + piece.len() as u64 <= self.limit {
            self.length = match memchr::memrchr(b'\n', piece) {
                Some(end) => (piece.len() - end - 1) as u64,
                None => self.length + piece.len() as u64,
            };
            return Cow::Borrowed(piece);
        }
        let mut kept = Vec::new();
        for line in piece.split_inclusive(|byte| *byte == b'\n') {
            let (words, ending) = match line.split_last() {
                Some((b'\n', words)) => (words, &b"\n"[..]),
                _ => (line, &b""[..]),
            };
            let room = usize::try_from(self.limit - self.length).unwrap_or(usize::MAX);
            let words = &words[..words.len().min(room)];
            kept.extend_from_slice(words);
            kept.extend_from_slice(ending);
            self.length = if ending.is_empty() {
                self.length + words.len() as u64
            } else {
                0
            };
        }
        Cow::Owned(kept)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_cut_at_the_limit_however_it_is_split() {
        let text = b"short\nexactly8\nmuch too long\n\nagain too long\nx\nunfinished line";
        let expected = b"short\nexactly8\nmuch too\n\nagain to\nx\nunfinish";
        for size in 1..=text.len() {
            let mut lines = LongLines { limit: 8, length: 0 };
            let kept: Vec<u8> = text
                .chunks(size)
                .flat_map(|piece| lines.cut(piece).into_owned())
                .collect();
            assert_eq!(kept, expected, "in pieces of {size}");
        }
    }
}
