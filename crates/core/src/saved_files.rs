//! Files as they were before a rewind, so that it can be undone. Only what lies in the session's folder is read and written, and
//! no link is followed: an agent that may write there could otherwise lead the server elsewhere.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::path::{Component, Path};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use rustix::fs::{AtFlags, Mode, OFlags};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

/// The largest file that is kept, and how much is kept of all files together.
const LARGEST: u64 = 4 << 20;
const ALTOGETHER: usize = 16 << 20;

/// A file as it was, and as the rewind left it.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub(crate) struct SavedFile {
    /// As the agent names it.
    pub(crate) path: String,
    /// `None`: there was no such file.
    content: Option<Content>,
    /// The hash of what the rewind left; `None`: no file. What is different at the time of the undo was changed since.
    #[serde(default)]
    left: Option<String>,
}

#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
struct Content {
    base64: String,
    mode: u32,
}

/// Whether a file that was changed since the rewind stays as it is.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Check {
    Unchanged,
    No,
}

/// The files, and the paths of those that can't be kept.
pub(crate) fn save(folder: &Path, paths: &[String]) -> (Vec<SavedFile>, Vec<String>) {
    let (mut saved, mut refused) = (Vec::new(), Vec::new());
    let mut room = ALTOGETHER;
    for path in paths {
        let content = match read(folder, path) {
            Ok(Some((bytes, mode))) if bytes.len() <= room => {
                room -= bytes.len();
                Some(Content {
                    base64: BASE64.encode(bytes),
                    mode,
                })
            }
            Ok(None) => None,
            Ok(Some(_)) | Err(_) => {
                refused.push(path.clone());
                continue;
            }
        };
        saved.push(SavedFile {
            path: path.clone(),
            content,
            left: None,
        });
    }
    (saved, refused)
}

/// The same files with what they are now.
pub(crate) fn note_state(folder: &Path, saved: Vec<SavedFile>) -> Vec<SavedFile> {
    let noted = |file: SavedFile| SavedFile {
        left: read(folder, &file.path)
            .ok()
            .flatten()
            .map(|(bytes, _)| hash(&bytes)),
        ..file
    };
    saved.into_iter().map(noted).collect()
}

/// Puts the files back. Which were, and which were not.
pub(crate) fn restore(folder: &Path, saved: &[SavedFile], check: Check) -> (Vec<String>, Vec<String>) {
    let (mut restored, mut left) = (Vec::new(), Vec::new());
    for file in saved {
        let is_as_left = || match read(folder, &file.path) {
            Ok(now) => now.map(|(bytes, _)| hash(&bytes)) == file.left,
            Err(_) => false,
        };
        let done = (check == Check::No || is_as_left()) && put(folder, file).is_ok();
        let list = if done { &mut restored } else { &mut left };
        list.push(file.path.clone());
    }
    (restored, left)
}

fn put(folder: &Path, file: &SavedFile) -> io::Result<()> {
    let (parent, name) = open_parent(folder, &file.path)?;
    let Some(content) = &file.content else {
        return match rustix::fs::unlinkat(&parent, &name, AtFlags::empty()) {
            Ok(()) | Err(rustix::io::Errno::NOENT) => Ok(()),
            Err(error) => Err(error.into()),
        };
    };
    let bytes = BASE64.decode(&content.base64).map_err(io::Error::other)?;
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::TRUNC | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let opened = rustix::fs::openat(&parent, &name, flags, Mode::from_raw_mode(content.mode & 0o777))?;
    File::from(opened).write_all(&bytes)
}

/// The bytes and the mode of a regular file. `None`: there is none.
fn read(folder: &Path, path: &str) -> io::Result<Option<(Vec<u8>, u32)>> {
    let parent = match open_parent(folder, path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        parent => parent?,
    };
    // Without NONBLOCK the opening of a FIFO would wait for a writer.
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let opened = match rustix::fs::openat(&parent.0, &parent.1, flags, Mode::empty()) {
        Err(rustix::io::Errno::NOENT) => return Ok(None),
        opened => File::from(opened?),
    };
    let metadata = opened.metadata()?;
    if !metadata.is_file() || metadata.len() > LARGEST {
        return Err(io::ErrorKind::InvalidData.into());
    }
    let mut bytes = Vec::new();
    opened.take(LARGEST + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > LARGEST {
        return Err(io::ErrorKind::InvalidData.into());
    }
    let mode = std::os::unix::fs::PermissionsExt::mode(&metadata.permissions());
    Ok(Some((bytes, mode)))
}

/// The folder that a file is in, reached from the session's folder step by step without following a link, and its name.
fn open_parent(folder: &Path, path: &str) -> io::Result<(OwnedFd, String)> {
    let refused = || io::Error::from(io::ErrorKind::PermissionDenied);
    let relative = Path::new(path).strip_prefix(folder).map_err(|_| refused())?;
    let mut names = Vec::new();
    for component in relative.components() {
        match component {
            Component::Normal(name) => names.push(name.to_str().ok_or_else(refused)?.to_owned()),
            _ => return Err(refused()),
        }
    }
    let name = names.pop().ok_or_else(refused)?;
    let flags = OFlags::DIRECTORY | OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mut parent = rustix::fs::open(folder, flags, Mode::empty())?;
    for name in names {
        parent = rustix::fs::openat(&parent, &name, flags, Mode::empty())?;
    }
    Ok((parent, name))
}

fn hash(bytes: &[u8]) -> String {
    BASE64.encode(Sha256::digest(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_come_back_unless_they_were_changed_since() {
        let keep = tempfile::tempdir().unwrap();
        let folder = keep.path().canonicalize().unwrap();
        std::fs::create_dir(folder.join("deep")).unwrap();
        let path = |name: &str| folder.join(name).to_str().unwrap().to_owned();
        let (edited, made, gone) = (path("edited.txt"), path("deep/made.txt"), path("gone.txt"));
        std::fs::write(&edited, "new").unwrap();
        std::fs::write(&made, "made").unwrap();
        let (saved, refused) = save(&folder, &[edited.clone(), made.clone(), gone.clone()]);
        assert_eq!(refused, [""; 0]);
        // The rewind.
        std::fs::write(&edited, "old").unwrap();
        std::fs::remove_file(&made).unwrap();
        std::fs::write(&gone, "was deleted").unwrap();
        let saved = note_state(&folder, saved);
        let (restored, left) = restore(&folder, &saved, Check::Unchanged);
        assert_eq!(restored, [edited.clone(), made.clone(), gone.clone()]);
        assert_eq!(left, [""; 0]);
        assert_eq!(std::fs::read_to_string(&edited).unwrap(), "new");
        assert_eq!(std::fs::read_to_string(&made).unwrap(), "made");
        assert!(!Path::new(&gone).exists());
        // Done already: what is there now is not what the rewind left.
        assert_eq!(restore(&folder, &saved, Check::Unchanged).1, [edited, made, gone]);
    }

    #[test]
    fn nothing_outside_the_folder_is_read_or_written() {
        let keep = tempfile::tempdir().unwrap();
        let root = keep.path().canonicalize().unwrap();
        let (folder, outside) = (root.join("project"), root.join("outside"));
        for each in [&folder, &outside] {
            std::fs::create_dir(each).unwrap();
        }
        std::fs::write(outside.join("secret"), "secret").unwrap();
        std::os::unix::fs::symlink(&outside, folder.join("way")).unwrap();
        std::os::unix::fs::symlink(outside.join("secret"), folder.join("link")).unwrap();
        let paths = ["way/secret", "link", "../outside/secret", "way"]
            .map(|name| format!("{}/{name}", folder.display()));
        let (saved, refused) = save(&folder, &paths);
        assert_eq!((saved.len(), refused.len()), (0, 4));

        // A file that has become a link since is not written through.
        let path = folder.join("file");
        std::fs::write(&path, "mine").unwrap();
        let (saved, _) = save(&folder, &[path.to_str().unwrap().to_owned()]);
        std::fs::remove_file(&path).unwrap();
        std::os::unix::fs::symlink(outside.join("secret"), &path).unwrap();
        let (restored, left) = restore(&folder, &saved, Check::No);
        assert_eq!((restored.len(), left.len()), (0, 1));
        assert_eq!(std::fs::read_to_string(outside.join("secret")).unwrap(), "secret");
    }
}
