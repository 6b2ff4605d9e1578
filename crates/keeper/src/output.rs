//! The agent's output in the run's folder: a sequence of files, each named after the position at which it begins.
//!
//! The keeper appends, and removes files that are no longer needed; the program reads. So output is safe as soon as it
//! is written here, and no file grows forever.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// The length of one file. Output that was read is removed from the disk in pieces of this size.
const SEGMENT: u64 = 8 * 1024 * 1024;

fn segment(folder: &Path, start: u64) -> PathBuf {
    folder.join(format!("out-{start:020}"))
}

/// The position at which the kept output begins.
pub(crate) fn first_kept(folder: &Path) -> u64 {
    segments(folder)
        .ok()
        .and_then(|starts| starts.first().copied())
        .unwrap_or(0)
}

/// The positions at which the files begin, in order.
fn segments(folder: &Path) -> io::Result<Vec<u64>> {
    let mut starts = Vec::new();
    for entry in fs::read_dir(folder)? {
        let name = entry?.file_name();
        let start = name.to_str().and_then(|name| name.strip_prefix("out-"));
        starts.extend(start.and_then(|start| start.parse::<u64>().ok()));
    }
    starts.sort_unstable();
    Ok(starts)
}

/// The keeper's side.
pub(crate) struct Appender {
    folder: PathBuf,
    file: File,
    starts: Vec<u64>,
    end: u64,
    /// Output before this position is no longer needed.
    forgotten: u64,
}

impl Appender {
    pub(crate) fn create(folder: &Path) -> io::Result<Self> {
        Ok(Self {
            folder: folder.to_owned(),
            file: create(folder, 0)?,
            starts: vec![0],
            end: 0,
            forgotten: 0,
        })
    }

    /// Where the output ends.
    pub(crate) fn end(&self) -> u64 {
        self.end
    }

    /// How much output is still needed.
    pub(crate) fn needed(&self) -> u64 {
        self.end - self.forgotten
    }

    /// Appends as much as possible. Returns how much, and the error that prevented the rest.
    pub(crate) fn append(&mut self, bytes: &[u8]) -> (usize, io::Result<()>) {
        let current = self.starts.last().copied().unwrap_or(0);
        if self.end - current >= SEGMENT {
            match create(&self.folder, self.end) {
                Ok(file) => {
                    self.file = file;
                    self.starts.push(self.end);
                    self.drop_forgotten();
                }
                Err(error) => return (0, Err(error)),
            }
        }
        let mut written = 0;
        while written < bytes.len() {
            match self.file.write(&bytes[written..]) {
                Ok(0) => return (written, Err(io::ErrorKind::WriteZero.into())),
                Ok(count) => {
                    written += count;
                    self.end += count as u64;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return (written, Err(error)),
            }
        }
        (written, Ok(()))
    }

    pub(crate) fn forget(&mut self, before: u64) {
        self.forgotten = self.forgotten.max(before.min(self.end));
        self.drop_forgotten();
    }

    fn drop_forgotten(&mut self) {
        // A file can be removed when the next one begins before the discarded position.
        while let [first, second, ..] = self.starts[..]
            && second <= self.forgotten
        {
            // A file that can't be removed takes space until the run is over; nothing worse.
            fs::remove_file(segment(&self.folder, first)).ok();
            self.starts.remove(0);
        }
    }
}

fn create(folder: &Path, start: u64) -> io::Result<File> {
    OpenOptions::new()
        .append(true)
        .create_new(true)
        .mode(0o600)
        .open(segment(folder, start))
}

/// The program's side.
pub(crate) struct OutputReader {
    folder: PathBuf,
    position: u64,
    file: Option<File>,
}

impl OutputReader {
    /// Reads from `position` on.
    pub(crate) fn new(folder: &Path, position: u64) -> Self {
        Self {
            folder: folder.to_owned(),
            position,
            file: None,
        }
    }

    pub(crate) fn position(&self) -> u64 {
        self.position
    }

    /// Reads what is there, at most a buffer full. Nothing means that no more output is there yet.
    ///
    /// Blocks, but only on the page cache: what is read here was written a moment ago.
    pub(crate) fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.file.is_none() {
            self.file = self.open()?;
        }
        let Some(file) = &mut self.file else { return Ok(0) };
        let count = file.read(buffer)?;
        self.position += count as u64;
        if count > 0 {
            return Ok(count);
        }
        // The end of this file, or of all output: the next file is named after this position.
        match File::open(segment(&self.folder, self.position)) {
            Ok(next) => {
                self.file = Some(next);
                self.read_first(buffer)
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(0),
            Err(error) => Err(error),
        }
    }

    fn read_first(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let Some(file) = &mut self.file else { return Ok(0) };
        let count = file.read(buffer)?;
        self.position += count as u64;
        Ok(count)
    }

    fn open(&self) -> io::Result<Option<File>> {
        let starts = segments(&self.folder)?;
        let Some(start) = starts.into_iter().rev().find(|start| *start <= self.position) else {
            return Ok(None);
        };
        let mut file = File::open(segment(&self.folder, start))?;
        file.seek(SeekFrom::Start(self.position - start))?;
        Ok(Some(file))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_all(reader: &mut OutputReader) -> Vec<u8> {
        let mut all = Vec::new();
        let mut buffer = vec![0; 100_000];
        loop {
            let count = reader.read(&mut buffer).unwrap();
            if count == 0 {
                return all;
            }
            all.extend_from_slice(&buffer[..count]);
        }
    }

    #[test]
    fn output_is_read_across_files_and_from_any_position() {
        let folder = tempfile::tempdir().unwrap();
        let mut output = Appender::create(folder.path()).unwrap();
        let mut reader = OutputReader::new(folder.path(), 0);
        let mut expected = Vec::new();
        for round in 0..400u32 {
            let piece: Vec<u8> = (0..50_000u32).map(|at| (at ^ round).to_le_bytes()[0]).collect();
            assert_eq!(output.append(&piece).0, piece.len());
            expected.extend_from_slice(&piece);
        }
        assert!(segments(folder.path()).unwrap().len() > 2);
        assert!(read_all(&mut reader) == expected);
        assert_eq!(reader.position(), output.end());
        for position in [1, 8_388_607, 8_388_608, 8_400_000, 19_999_999] {
            let mut reader = OutputReader::new(folder.path(), position as u64);
            assert!(read_all(&mut reader) == expected[position..], "from {position}");
        }
    }

    #[test]
    fn discarded_output_leaves_the_disk_and_the_rest_can_be_read() {
        let folder = tempfile::tempdir().unwrap();
        let mut output = Appender::create(folder.path()).unwrap();
        let piece = vec![7; 1_000_000];
        for _ in 0..30 {
            output.append(&piece).1.unwrap();
        }
        output.forget(20_000_000);
        assert_eq!(output.needed(), 10_000_000);
        assert!(segments(folder.path()).unwrap()[0] > 8_000_000);
        let mut reader = OutputReader::new(folder.path(), 20_000_000);
        assert_eq!(read_all(&mut reader).len(), 10_000_000);
        output.forget(u64::MAX);
        assert_eq!(output.needed(), 0);
        assert_eq!(segments(folder.path()).unwrap().len(), 1);
    }
}
