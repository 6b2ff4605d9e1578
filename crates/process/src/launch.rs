//! The description of a process to start, as data: another process may start it.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use crate::hosts::HostPattern;

/// A process that is ready to be started.
#[derive(Clone, PartialEq, Eq)]
pub struct Launch {
    /// The program.
    pub program: PathBuf,
    /// Its arguments.
    pub args: Vec<OsString>,
    /// Its whole environment.
    pub env: BTreeMap<OsString, OsString>,
    /// Its working directory; the starting process's own if `None`.
    pub cwd: Option<PathBuf>,
    /// The working directory was checked under this path, which had no symbolic links. If it has one by now, the
    /// process is not started.
    pub exact_cwd: bool,
    /// The maximum number of open files; that of the starting process if `None`.
    pub open_files: Option<u64>,
    /// Restricts where the process and its children can write; see [`Shield::wrap`](crate::Shield::wrap).
    pub sandbox: Option<Sandbox>,
}

/// A file system that can't be written to, but for some folders and a `/tmp` of its own, without the sockets of the machine's
/// services, and mostly without a network.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Sandbox {
    /// The folders that stay writable.
    pub writable: Vec<PathBuf>,
    /// What can't be written to although it is beneath that. Only what is there can be protected.
    pub protected: Vec<PathBuf>,
    /// The hosts that can be reached, through a proxy. `None`: the network is as usual.
    pub hosts: Option<Vec<HostPattern>>,
}

impl Launch {
    /// Opens the working directory: the process is started in the folder that was opened, whatever the path leads to a
    /// moment later.
    pub fn open_cwd(&self) -> io::Result<Option<WorkingDirectory>> {
        let Some(path) = &self.cwd else { return Ok(None) };
        WorkingDirectory::open(path, self.exact_cwd).map(Some)
    }
}

/// An open working directory.
#[derive(Debug)]
pub struct WorkingDirectory {
    path: PathBuf,
    _handle: File,
}

impl WorkingDirectory {
    #[cfg(target_os = "linux")]
    fn open(path: &Path, exact: bool) -> io::Result<Self> {
        use std::os::fd::AsRawFd as _;

        use rustix::fs::{CWD, Mode, OFlags, ResolveFlags, openat2};
        use rustix::io::Errno;

        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let resolve = if exact {
            ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS
        } else {
            ResolveFlags::empty()
        };
        let opened = match openat2(CWD, path, flags, Mode::empty(), resolve) {
            // The kernel or a seccomp filter does not know the call.
            Err(Errno::NOSYS | Errno::PERM) => rustix::fs::open(path, flags, Mode::empty())?,
            opened => opened?,
        };
        let handle = File::from(opened);
        let place = PathBuf::from(format!("/proc/self/fd/{}", handle.as_raw_fd()));
        if exact && std::fs::read_link(&place)? != path {
            return Err(io::Error::other(
                "the working directory has been moved or replaced",
            ));
        }
        Ok(Self {
            path: place,
            _handle: handle,
        })
    }

    #[cfg(not(target_os = "linux"))]
    fn open(path: &Path, _exact: bool) -> io::Result<Self> {
        Ok(Self {
            path: path.to_owned(),
            _handle: File::open(path)?,
        })
    }

    /// The path by which a child of this process can enter it, while this value lives.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl std::fmt::Debug for Launch {
    /// Omits the values of the environment, which contain credentials.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Launch")
            .field("program", &self.program)
            .field("args", &self.args)
            .field("env", &self.env.keys())
            .field("cwd", &self.cwd)
            .field("open_files", &self.open_files)
            .field("sandbox", &self.sandbox)
            .finish_non_exhaustive()
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::os::unix::fs::symlink;
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;

    /// A folder that was checked, and is replaced by a link to another again and again.
    #[test]
    fn a_folder_that_becomes_a_link_is_not_used() {
        let place = tempfile::tempdir().unwrap();
        let base = place.path().canonicalize().unwrap();
        let (project, aside, secret) = (base.join("project"), base.join("aside"), base.join("secret"));
        std::fs::create_dir(&project).unwrap();
        std::fs::create_dir(&secret).unwrap();
        let stop = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !stop.load(Ordering::Relaxed) {
                    std::fs::rename(&project, &aside).unwrap();
                    symlink(&secret, &project).unwrap();
                    std::fs::remove_file(&project).unwrap();
                    std::fs::rename(&aside, &project).unwrap();
                }
            });
            let (mut started, mut refused) = (0, 0);
            while (started < 20 || refused < 20) && started + refused < 100_000 {
                match WorkingDirectory::open(&project, true) {
                    Ok(opened) => {
                        // Whatever happens to the path: the opened folder is the one that was checked.
                        let there = std::fs::read_link(opened.path()).unwrap();
                        assert_ne!(there, secret);
                        started += 1;
                    }
                    Err(_) => refused += 1,
                }
            }
            stop.store(true, Ordering::Relaxed);
            assert!(started > 0);
        });
        // Without a check, links are as good as folders.
        symlink(&secret, base.join("link")).unwrap();
        let opened = WorkingDirectory::open(&base.join("link"), false).unwrap();
        assert_eq!(std::fs::read_link(opened.path()).unwrap(), secret);
        assert!(WorkingDirectory::open(&base.join("link"), true).is_err());
    }
}
