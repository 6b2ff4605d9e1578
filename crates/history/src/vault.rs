//! An archive of transcripts that outlives the CLI's own clean-up.
//!
//! A folder with the same layout as the CLI's, every file compressed on its own, so that it can be read without this
//! program. Archived transcripts stay, also when the CLI deletes its copy; a transcript that grew is archived again,
//! one that shrank is not. An archive exists only if the user has turned it on.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::error::{HistoryError, Result};
use crate::history::History;
use crate::model::Session;
use crate::private;
use crate::read::place::{SessionId, Transcript};

/// Good compression at several hundred megabytes a second.
const LEVEL: i32 = 3;

/// The CLI deletes transcripts that have not changed for this many days, unless its settings say otherwise.
const DEFAULT_RETENTION_DAYS: u32 = 30;

pub struct Vault {
    folder: PathBuf,
}

/// The result of a round of archiving.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Archived {
    /// Sessions that were new or had grown.
    pub sessions: usize,
    pub bytes: u64,
}

/// The size of a vault.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stored {
    pub sessions: usize,
    /// The compressed size on disk.
    pub bytes: u64,
}

/// A session in the vault, and its files.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Entry {
    session: Session,
    /// Paths relative to the folder of projects, with the original sizes.
    files: Vec<(String, u64, i64)>,
}

impl History {
    /// How many days the CLI keeps transcripts, from the user's settings.
    pub fn retention_days(&self) -> u32 {
        let settings = File::open(self.home.join("settings.json")).and_then(|file| {
            let mut text = String::new();
            file.take(4 * 1024 * 1024).read_to_string(&mut text)?;
            Ok(text)
        });
        let days = settings
            .ok()
            .and_then(|text| serde_json::from_str::<serde_json::Value>(&text).ok());
        let days = days.and_then(|settings| settings["cleanupPeriodDays"].as_u64());
        days.and_then(|days| u32::try_from(days).ok())
            .unwrap_or(DEFAULT_RETENTION_DAYS)
    }
}

impl Vault {
    /// Opens the vault in `folder`, creating it if necessary.
    pub fn open(folder: &Path) -> Result<Self> {
        private::make_or_close_folder(folder)?;
        Ok(Self {
            folder: folder.to_owned(),
        })
    }

    /// Archives every session that is new or has grown.
    pub fn archive(&self, history: &History) -> Result<Archived> {
        let mut done = Archived::default();
        for listed in history
            .listed()?
            .into_iter()
            .filter(crate::list::catalogue::Listed::is_session)
        {
            match self.archive_session(history, &listed.transcript, listed.session()?) {
                Ok(bytes) => {
                    done.sessions += usize::from(bytes > 0);
                    done.bytes += bytes;
                }
                // The CLI may have just deleted it. A full disk, however, must be reported.
                Err(HistoryError::NotFound) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(done)
    }

    fn archive_session(&self, history: &History, transcript: &Transcript, session: Session) -> Result<u64> {
        let mut files = vec![(transcript.path.clone(), transcript.stamp)];
        for subagent in history.projects.subagents(transcript)? {
            files.push((subagent.path.clone(), subagent.stamp));
            let notes = format!("{}.meta.json", subagent.path.trim_end_matches(".jsonl"));
            if let Ok((_, stamp)) = history.projects.open(&notes) {
                files.push((notes, stamp));
            }
        }
        for (name, stamp) in history.projects.tool_results(transcript)? {
            files.push((
                format!(
                    "{}/{}/tool-results/{name}",
                    transcript.project(),
                    transcript.stem()
                ),
                stamp,
            ));
        }
        let old = self.entry(transcript.project(), transcript.stem())?;
        let known = |path: &str| {
            old.as_ref()
                .and_then(|old| old.files.iter().find(|(known, ..)| known == path))
        };
        let mut bytes = 0;
        let mut kept: Vec<(String, u64, i64)> = old.as_ref().map(|old| old.files.clone()).unwrap_or_default();
        for (path, stamp) in files {
            let is_new = known(&path).is_none_or(|(_, size, modified)| {
                stamp.size > *size || (stamp.size == *size && stamp.modified_ns != *modified)
            });
            if !is_new {
                continue;
            }
            let (mut file, stamp) = history.projects.open(&path)?;
            self.write(&format!("{path}.zst"), |out| {
                let mut encoder = zstd::Encoder::new(out, LEVEL)?;
                encoder.include_checksum(true)?;
                io::copy(&mut file, &mut encoder)?;
                encoder.finish()?;
                Ok(())
            })?;
            kept.retain(|(known, ..)| *known != path);
            kept.push((path, stamp.size, stamp.modified_ns));
            bytes += stamp.size;
        }
        if bytes > 0 {
            // Last, so that everything it lists exists.
            let entry = Entry {
                session: Session {
                    archived: true,
                    ..session
                },
                files: kept,
            };
            let json = serde_json::to_vec(&entry).map_err(io::Error::from)?;
            self.write(&entry_path(transcript.project(), transcript.stem()), |out| {
                io::Write::write_all(out, &json)
            })?;
        }
        Ok(bytes)
    }

    /// The size of the vault.
    pub fn stored(&self) -> Result<Stored> {
        let mut stored = Stored::default();
        for entry in self.entries()? {
            stored.sessions += 1;
            for (path, ..) in &entry.files {
                // A missing file is archived again with the next round.
                let size = fs::metadata(self.folder.join(format!("{path}.zst"))).map_or(0, |file| file.len());
                stored.bytes += size;
            }
        }
        Ok(stored)
    }

    /// The sessions that exist only in the vault, newest first.
    pub fn sessions(&self, history: &History) -> Result<Vec<Session>> {
        let mut found = Vec::new();
        for entry in self.entries()? {
            if history.projects.session(&entry.session.id).is_err() {
                found.push(entry.session);
            }
        }
        found.sort_by(|a, b| b.last_active.cmp(&a.last_active));
        Ok(found)
    }

    /// Restores an archived session to where the CLI finds it. The files get the current time, so that the CLI's
    /// clean-up does not delete them soon. Never overwrites anything. `home` is the CLI's home, or any other folder to
    /// read it from with a [`History`].
    pub fn restore(&self, id: &SessionId, home: &Path) -> Result<()> {
        let entry = self
            .entries()?
            .into_iter()
            .find(|entry| entry.session.id == *id)
            .ok_or(HistoryError::NotFound)?;
        let main = format!("{}/{id}.jsonl", entry.session.project);
        // The transcript last: with it the session exists.
        let (transcript, others): (Vec<_>, Vec<_>) = entry.files.iter().partition(|(path, ..)| *path == main);
        for (path, ..) in others.into_iter().chain(transcript) {
            if path
                .split('/')
                .any(|part| part.is_empty() || part == "." || part == "..")
            {
                return Err(HistoryError::Invalid(
                    "the archive names a file outside of the history",
                ));
            }
            let archived = File::open(self.folder.join(format!("{path}.zst")))?;
            let target = home.join("projects").join(path);
            if target.exists() {
                continue;
            }
            replace(&target, |out| {
                io::copy(&mut zstd::Decoder::new(archived)?, out)?;
                Ok(())
            })?;
        }
        Ok(())
    }

    fn entries(&self) -> Result<Vec<Entry>> {
        let mut found = Vec::new();
        for project in fs::read_dir(&self.folder)? {
            let project = project?;
            if !project.file_type()?.is_dir() {
                continue;
            }
            let project = project.file_name().to_string_lossy().into_owned();
            for file in fs::read_dir(self.folder.join(&project))? {
                let name = file?.file_name().to_string_lossy().into_owned();
                if let Some(stem) = name.strip_suffix(".session.json") {
                    found.extend(self.entry(&project, stem)?);
                }
            }
        }
        Ok(found)
    }

    /// `None` if the file is missing or can't be read; then the transcript is archived again.
    fn entry(&self, project: &str, stem: &str) -> Result<Option<Entry>> {
        match fs::read(self.folder.join(entry_path(project, stem))) {
            Ok(bytes) => Ok(serde_json::from_slice(&bytes).ok()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    fn write(&self, path: &str, fill: impl FnOnce(&mut File) -> io::Result<()>) -> Result<()> {
        replace(&self.folder.join(path), fill)
    }
}

fn entry_path(project: &str, stem: &str) -> String {
    format!("{project}/{stem}.session.json")
}

/// Writes a temporary file, and moves it to its place when it is complete and on disk.
fn replace(path: &Path, fill: impl FnOnce(&mut File) -> io::Result<()>) -> Result<()> {
    let mut temporary = path.as_os_str().to_owned();
    temporary.push(".part");
    let temporary = PathBuf::from(temporary);
    let folder = path.parent().unwrap_or(path);
    private::make_folder(folder)?;
    let written = private::create_file(&temporary).and_then(|mut file| {
        fill(&mut file)?;
        file.sync_all()
    });
    let moved = written.and_then(|()| fs::rename(&temporary, path));
    if moved.is_err() {
        // The partial file is useless; the first error is the one to report.
        drop(fs::remove_file(&temporary));
    }
    moved.map_err(HistoryError::Io)
}
