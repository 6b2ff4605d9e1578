//! Where transcripts are under the CLI's home, and the only code that opens them.
//!
//! All files are opened beneath the `projects` folder through a handle on it: no name and no symbolic link leads
//! outside. Nothing is opened for writing.

use std::ffi::CStr;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use cap_std::ambient_authority;
use cap_std::fs::Dir;
use rayon::prelude::*;
use rustix::fs::{AtFlags, FileType, Mode, OFlags, openat, statat};
use serde::{Deserialize, Serialize};
use ts_rs::TS;

use crate::error::{HistoryError, Result};
use crate::read::follow::Stamp;

/// The id of a session: the name of its file without `.jsonl`. Today the CLI always uses a UUID.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, TS)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(try_from = "String", into = "String")]
#[ts(type = "string", rename = "HistorySessionId", export_to = "history.ts")]
#[cfg_attr(feature = "openapi", schema(as = HistorySessionId, value_type = String))]
pub struct SessionId(String);

/// The id of a project: the name of its folder.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, TS)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(try_from = "String", into = "String")]
#[ts(type = "string", export_to = "history.ts")]
#[cfg_attr(feature = "openapi", schema(value_type = String))]
pub struct ProjectId(String);

macro_rules! id {
    ($name:ident, $why:literal) => {
        impl $name {
            /// Accepts a plain name, never a path.
            pub fn parse(text: &str) -> Result<Self> {
                if is_plain_name(text) {
                    Ok(Self(text.to_owned()))
                } else {
                    Err(HistoryError::Invalid($why))
                }
            }

            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl TryFrom<String> for $name {
            type Error = HistoryError;

            fn try_from(text: String) -> Result<Self> {
                Self::parse(&text)
            }
        }

        impl From<$name> for String {
            fn from(id: $name) -> String {
                id.0
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str(&self.0)
            }
        }
    };
}

id!(SessionId, "a session id is a UUID or the name of a transcript");
id!(ProjectId, "a project id is the name of a folder of the history");

/// A name of letters (of any script), digits and a few other characters, that can't be a path, hidden, or too long for
/// a file.
fn is_plain_name(text: &str) -> bool {
    let is_sign = |letter: char| matches!(letter, '-' | '_' | '.');
    (1..=255).contains(&text.len())
        && !text.starts_with('.')
        // All bytes at once, because nearly every name is plain and a list of sessions checks thousands.
        && (text.bytes().fold(true, |plain, byte| {
            plain & (byte.is_ascii_alphanumeric() | is_sign(char::from(byte)))
        }) || text
                .chars()
                .all(|letter| letter.is_alphanumeric() || is_sign(letter)))
}

/// A transcript that exists.
#[derive(Clone, Debug)]
pub(crate) struct Transcript {
    /// Relative to the `projects` folder.
    pub(crate) path: String,
    pub(crate) stamp: Stamp,
}

impl Transcript {
    /// The name of the project's folder.
    pub(crate) fn project(&self) -> &str {
        self.path.split('/').next().unwrap_or_default()
    }

    /// The file's name without `.jsonl`.
    pub(crate) fn stem(&self) -> &str {
        let name = self.path.rsplit('/').next().unwrap_or_default();
        name.strip_suffix(".jsonl").unwrap_or(name)
    }

    /// Older releases put the transcripts of subagents beside those of sessions.
    pub(crate) fn is_subagent(&self) -> bool {
        self.stem().starts_with("agent-")
    }
}

/// The `projects` folder of the CLI's home.
#[derive(Clone, Debug)]
pub(crate) struct Projects {
    path: PathBuf,
}

impl Projects {
    pub(crate) fn new(claude_home: &Path) -> Self {
        Self {
            path: claude_home.join("projects"),
        }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// A handle on the folder; `None` if the folder does not exist.
    pub(crate) fn root(&self) -> Result<Option<Root>> {
        match Dir::open_ambient_dir(&self.path, ambient_authority()) {
            Ok(dir) => Ok(Some(Root(dir))),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// The transcripts directly in a project's folder, including those of subagents of older releases.
    pub(crate) fn transcripts(&self, project: &str) -> Result<Vec<Transcript>> {
        let root = self.root()?.ok_or(HistoryError::NotFound)?;
        root.list(project)
    }

    /// All transcripts of all projects. A folder that can't be read is skipped.
    pub(crate) fn all_transcripts(&self) -> Result<Vec<Transcript>> {
        let Some(root) = self.root()? else {
            return Ok(Vec::new());
        };
        // Most of this time is spent waiting for the system: on all cores at once.
        let found: Vec<Vec<Transcript>> = root
            .names()?
            .into_par_iter()
            .with_max_len(1)
            .filter_map(|project| {
                let found = root.list(&project);
                found
                    .inspect_err(|error| tracing::warn!(%error, "a project of the history could not be read"))
                    .ok()
            })
            .collect();
        Ok(found.into_iter().flatten().collect())
    }

    /// The transcript of a session; the newest, if several projects have one.
    pub(crate) fn session(&self, id: &SessionId) -> Result<Transcript> {
        let root = self.root()?.ok_or(HistoryError::NotFound)?;
        let mut found: Option<Transcript> = None;
        for project in root.names()? {
            let path = format!("{project}/{id}.jsonl");
            let Ok(metadata) = root.0.metadata(&path) else {
                continue;
            };
            let stamp = Stamp::of(&metadata);
            if metadata.is_file()
                && found
                    .as_ref()
                    .is_none_or(|best| best.stamp.modified_ns < stamp.modified_ns)
            {
                found = Some(Transcript { path, stamp });
            }
        }
        found.ok_or(HistoryError::NotFound)
    }

    /// The transcripts of a session's subagents, from the folder beside its own.
    pub(crate) fn subagents(&self, session: &Transcript) -> Result<Vec<Transcript>> {
        let Some(root) = self.root()? else {
            return Ok(Vec::new());
        };
        match root.list(&format!("{}/{}/subagents", session.project(), session.stem())) {
            Ok(mut found) => {
                found.sort_by(|a, b| a.path.cmp(&b.path));
                Ok(found)
            }
            Err(HistoryError::NotFound) => Ok(Vec::new()),
            Err(error) => Err(error),
        }
    }

    /// The names and sizes of large tool results that the CLI stores beside the transcript.
    pub(crate) fn tool_results(&self, session: &Transcript) -> Result<Vec<(String, Stamp)>> {
        let Some(root) = self.root()? else {
            return Ok(Vec::new());
        };
        let folder = match root
            .0
            .open_dir(format!("{}/{}/tool-results", session.project(), session.stem()))
        {
            Ok(folder) => folder,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(error.into()),
        };
        let mut found = Vec::new();
        for entry in folder.entries()? {
            let entry = entry?;
            if let Some(name) = entry.file_name().to_str().filter(|name| is_plain_name(name)) {
                let metadata = entry.metadata()?;
                if metadata.is_file() {
                    found.push((name.to_owned(), Stamp::of(&metadata)));
                }
            }
        }
        found.sort_by(|a, b| a.0.cmp(&b.0));
        Ok(found)
    }

    pub(crate) fn open_tool_result(&self, session: &Transcript, name: &str) -> Result<File> {
        if !is_plain_name(name) {
            return Err(HistoryError::Invalid(
                "the name of a tool result must not be a path",
            ));
        }
        self.open(&format!(
            "{}/{}/tool-results/{name}",
            session.project(),
            session.stem()
        ))
        .map(|(file, _)| file)
    }

    /// The content of a small file beside a transcript; `None` if the file does not exist.
    pub(crate) fn read_small(&self, path: &str) -> Option<Vec<u8>> {
        use std::io::Read as _;
        let (file, _) = self.open(path).ok()?;
        let mut bytes = Vec::new();
        file.take(64 * 1024).read_to_end(&mut bytes).ok()?;
        Some(bytes)
    }

    /// Opens a file by its path relative to the `projects` folder.
    pub(crate) fn open(&self, path: &str) -> Result<(File, Stamp)> {
        self.root()?.ok_or(HistoryError::NotFound)?.open(path)
    }
}

/// A handle on the `projects` folder, for several operations.
pub(crate) struct Root(Dir);

impl Root {
    /// All projects' names.
    fn names(&self) -> Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in self.0.entries()? {
            let entry = entry?;
            let kind = entry.file_type()?;
            if let Some(name) = entry.file_name().to_str().filter(|name| is_plain_name(name))
                && (kind.is_dir()
                    || (kind.is_symlink() && self.0.metadata(name).is_ok_and(|target| target.is_dir())))
            {
                names.push(name.to_owned());
            }
        }
        names.sort_unstable();
        Ok(names)
    }

    /// The transcripts directly in a folder.
    fn list(&self, folder: &str) -> Result<Vec<Transcript>> {
        // Thousands of files: the system is asked directly, by their names alone.
        let dir = self.0.open_dir(folder)?;
        let mut found = Vec::new();
        each_name(&dir, |name| {
            let Some(plain) = name
                .to_str()
                .ok()
                .filter(|name| name.strip_suffix(".jsonl").is_some_and(is_plain_name))
            else {
                return;
            };
            let path = || [folder, "/", plain].concat();
            // A file may vanish while the folder is read, because the CLI deletes old ones.
            let Ok(stat) = statat(&dir, name, AtFlags::SYMLINK_NOFOLLOW) else {
                return;
            };
            let stamp = match FileType::from_raw_mode(stat.st_mode) {
                FileType::RegularFile => Some(Stamp::of_stat(&stat)),
                FileType::Symlink => {
                    let target = self.0.metadata(path()).ok();
                    target
                        .filter(cap_std::fs::Metadata::is_file)
                        .map(|file| Stamp::of(&file))
                }
                _ => None,
            };
            found.extend(stamp.map(|stamp| Transcript { path: path(), stamp }));
        })?;
        Ok(found)
    }

    /// Opens a file by its path relative to the folder.
    pub(crate) fn open(&self, path: &str) -> Result<(File, Stamp)> {
        let file = self.0.open(path)?;
        let stamp = Stamp::of(&file.metadata()?);
        Ok((file.into_std(), stamp))
    }
}

/// Calls `take` with the name of every entry of a folder.
fn each_name(dir: &Dir, mut take: impl FnMut(&CStr)) -> io::Result<()> {
    // The handle on the folder can't be used to read it.
    let readable = openat(
        dir,
        c".",
        OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC,
        Mode::empty(),
    )?;
    #[cfg(target_os = "linux")]
    {
        // Large enough to read most folders at once.
        let mut memory = Vec::with_capacity(32 * 1024);
        let mut entries = rustix::fs::RawDir::new(readable, memory.spare_capacity_mut());
        while let Some(entry) = entries.next() {
            take(entry?.file_name());
        }
    }
    #[cfg(not(target_os = "linux"))]
    for entry in rustix::fs::Dir::new(readable)? {
        take(entry?.file_name());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_never_a_path() {
        for bad in [
            "",
            ".",
            "..",
            "../x",
            "a/b",
            "a\\b",
            "a\0b",
            ".hidden",
            "/etc/passwd",
            "a\nb",
        ] {
            assert!(SessionId::parse(bad).is_err(), "{bad:?}");
            assert!(ProjectId::parse(bad).is_err(), "{bad:?}");
        }
        assert!(SessionId::parse("20b3ed5b-9a44-438e-953a-93695d674a09").is_ok());
        assert!(ProjectId::parse("-home-user-my-project").is_ok());
    }

    #[cfg(unix)]
    #[test]
    fn a_link_that_leads_out_is_not_followed() {
        let home = tempfile::tempdir().unwrap();
        let outside = tempfile::tempdir().unwrap();
        std::fs::write(outside.path().join("secret.jsonl"), "{}\n").unwrap();
        let project = home.path().join("projects/-p");
        std::fs::create_dir_all(&project).unwrap();
        std::fs::write(project.join("real.jsonl"), "{}\n").unwrap();
        std::os::unix::fs::symlink(outside.path().join("secret.jsonl"), project.join("out.jsonl")).unwrap();
        std::os::unix::fs::symlink("real.jsonl", project.join("inside.jsonl")).unwrap();
        std::os::unix::fs::symlink(outside.path(), home.path().join("projects/-out")).unwrap();

        let projects = Projects::new(home.path());
        assert_eq!(projects.root().unwrap().unwrap().names().unwrap(), ["-p"]);
        let mut stems: Vec<_> = projects
            .transcripts("-p")
            .unwrap()
            .into_iter()
            .map(|found| found.stem().to_owned())
            .collect();
        stems.sort();
        assert_eq!(stems, ["inside", "real"]);
        assert!(projects.open("-p/out.jsonl").is_err());
        assert!(projects.open("../secret").is_err());
        assert!(projects.session(&SessionId::parse("out").unwrap()).is_err());
    }
}
