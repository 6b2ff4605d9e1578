//! Reads a transcript into a [`Part`] (the list's digest, the chain's outline, the ledger of tokens) and goes on from there when it grows.
//!
//! A file is known by inode, size and time of change. If only its size grew, and the bytes before the old end are still
//! the same, reading goes on at the old end; otherwise it starts afresh. A line without a newline is read, but not passed:
//! whoever writes it may not be done.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};

use cap_std::fs::MetadataExt as _;

use crate::gaps::Gaps;
use crate::lines::{Buffer, Line, take_lines};
use crate::record::Record;

/// How a file looked when it was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(crate) struct Stamp {
    pub(crate) inode: u64,
    pub(crate) size: u64,
    pub(crate) modified_ns: i64,
}

impl Stamp {
    pub(crate) fn of(metadata: &cap_std::fs::Metadata) -> Self {
        Self {
            inode: metadata.ino(),
            size: metadata.len(),
            modified_ns: metadata
                .mtime()
                .wrapping_mul(1_000_000_000)
                .wrapping_add(metadata.mtime_nsec()),
        }
    }
}

/// Something that is built from the lines of a transcript.
pub(crate) trait Part: Clone + Default {
    /// Where the index keeps it.
    const TABLE: &'static str;
    fn add(&mut self, offset: u64, line: &[u8], record: &Record<'_>);
    /// A line was torn, spliced or too long.
    fn damaged(&mut self) {}
    fn to_bytes(&self) -> Vec<u8>;
    fn from_bytes(bytes: &[u8]) -> Option<Self>;
}

/// A part and how far it has been read.
#[derive(Clone, Debug, Default)]
pub(crate) struct Followed<P> {
    pub(crate) stamp: Stamp,
    /// Behind the last whole line.
    pub(crate) offset: u64,
    /// Of the bytes before `offset`, to notice a file that was written anew in place.
    pub(crate) check: u64,
    pub(crate) part: P,
    /// As `part`, with the line that has no newline yet; only where there is one.
    pub(crate) with_unfinished: Option<Box<P>>,
}

impl<P: Part> Followed<P> {
    /// What to show: everything that can be read right now.
    pub(crate) fn current(&self) -> &P {
        self.with_unfinished.as_deref().unwrap_or(&self.part)
    }
}

/// Reads `file`, going on from `known` where that is possible.
pub(crate) fn follow<P: Part>(
    file: &mut File,
    stamp: Stamp,
    known: Option<Followed<P>>,
    buffer: &mut Buffer,
) -> io::Result<Followed<P>> {
    let mut state = match known {
        Some(known) if continues(file, stamp, &known)? => known,
        _ => Followed::default(),
    };
    state.stamp = stamp;
    state.with_unfinished = None;
    let Followed {
        part,
        with_unfinished,
        offset: from,
        ..
    } = &mut state;
    let shared = std::cell::RefCell::new(part);
    let end = Gaps::with(|gaps| {
        let take = |offset: u64, bytes: &[u8]| {
            let (record, length) = Record::begin(bytes, gaps)?;
            if bytes.get(length) != Some(&b'\n') {
                return None;
            }
            shared.borrow_mut().add(offset, &bytes[..length], &record);
            Some(length + 1)
        };
        take_lines(file, *from, buffer, take, |line| {
            let part = &mut **shared.borrow_mut();
            match line {
                Line::Whole { offset, bytes } => add_line(part, offset, bytes),
                Line::TooLong => part.damaged(),
                Line::Unfinished { offset, bytes } => {
                    let mut with = Box::new(part.clone());
                    add_line(&mut *with, offset, bytes);
                    *with_unfinished = Some(with);
                }
            }
            true
        })
    })?;
    state.offset = end;
    state.check = check(file, end)?;
    Ok(state)
}

fn add_line<P: Part>(part: &mut P, offset: u64, bytes: &[u8]) {
    if bytes.iter().all(u8::is_ascii_whitespace) {
        return;
    }
    match Record::read(bytes) {
        Some(record) => part.add(offset, bytes, &record),
        None => part.damaged(),
    }
}

fn continues<P>(file: &mut File, stamp: Stamp, known: &Followed<P>) -> io::Result<bool> {
    if known.stamp.inode != stamp.inode || stamp.size < known.stamp.size || known.offset > stamp.size {
        return Ok(false);
    }
    Ok(check(file, known.offset)? == known.check)
}

/// A fingerprint of the bytes before an offset.
pub(crate) fn check(file: &mut File, offset: u64) -> io::Result<u64> {
    let length = offset.min(256);
    let mut tail = Vec::with_capacity(256);
    file.seek(SeekFrom::Start(offset - length))?;
    file.take(length).read_to_end(&mut tail)?;
    Ok(fingerprint(&tail))
}

/// FNV-1a: stable across builds, which is what a number kept on disk must be.
pub(crate) fn fingerprint(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3)
    })
}
