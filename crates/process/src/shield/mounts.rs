//! The file system that an agent sees.

use std::ffi::{CString, OsString};
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd as _;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags};
use rustix::mount::{MountFlags, MountPropagationFlags, mount, mount_bind_recursive, mount_change};

use super::Plan;
use crate::launch::Sandbox;

/// Folders that every sandboxed agent has for itself.
const PRIVATE: [&str; 3] = ["/tmp", "/var/tmp", "/dev/shm"];

/// Changes the mounts of this process's namespace according to the plan.
pub(super) fn make(plan: &Plan) -> io::Result<()> {
    // Later mounts outside are visible here; mounts here are not visible outside.
    mount_change(
        "/",
        MountPropagationFlags::REC | MountPropagationFlags::DOWNSTREAM,
    )?;
    mount(
        "proc",
        "/proc",
        "proc",
        MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC,
        None,
    )
    .map_err(|error| io::Error::other(format!("/proc can't be mounted: {error}")))?;
    if let Some(sandbox) = &plan.sandbox {
        close(sandbox)?;
    }
    // Folders below a private folder are already hidden.
    let there = |folder: &&PathBuf| plan.sandbox.is_none() || folder.is_dir();
    for folder in plan.hidden.iter().filter(there) {
        empty(folder, MountFlags::RDONLY, c"size=4k,mode=0555")?;
    }
    for folder in plan.emptied.iter().filter(there) {
        empty(folder, MountFlags::empty(), c"size=1m,mode=0700")?;
    }
    Ok(())
}

fn empty(folder: &Path, flags: MountFlags, options: &std::ffi::CStr) -> io::Result<()> {
    let flags = flags | MountFlags::NOSUID | MountFlags::NODEV;
    mount("tmpfs", folder, "tmpfs", flags, Some(options))
        .map_err(|error| io::Error::other(format!("{} can't be hidden: {error}", folder.display())))
}

/// Leaves only the listed folders writable.
fn close(sandbox: &Sandbox) -> io::Result<()> {
    // Opened while they can still be reached: some may be in a folder that is about to be covered.
    let mut open = Vec::new();
    for folder in &sandbox.writable {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let handle = rustix::fs::open(folder, flags, Mode::empty())
            .map_err(|error| io::Error::other(format!("{} can't be opened: {error}", folder.display())))?;
        open.push((folder, File::from(handle)));
    }
    set_read_only(Path::new("/"), true)
        .map_err(|error| io::Error::other(format!("the file system can't be closed: {error}")))?;
    set_read_only(Path::new("/proc"), false)?;
    for place in PRIVATE.map(Path::new) {
        if place.is_dir() {
            empty(place, MountFlags::empty(), c"mode=1777")?;
        }
    }
    for (folder, handle) in open {
        if !folder.is_dir() {
            std::fs::create_dir_all(folder)?;
        }
        let source = format!("/proc/self/fd/{}", handle.as_raw_fd());
        mount_bind_recursive(source, folder)
            .and_then(|()| set_read_only(folder, false))
            .map_err(|error| io::Error::other(format!("{} can't be kept open: {error}", folder.display())))?;
    }
    Ok(())
}

/// Sets or clears the read-only flag of a mount and of everything beneath it.
fn set_read_only(place: &Path, read_only: bool) -> rustix::io::Result<()> {
    let path = CString::new(place.as_os_str().as_bytes()).map_err(|_| rustix::io::Errno::INVAL)?;
    // SAFETY: a structure of numbers, for which all zeroes is valid.
    let mut attributes: libc::mount_attr = unsafe { std::mem::zeroed() };
    if read_only {
        attributes.attr_set = libc::MOUNT_ATTR_RDONLY;
    } else {
        attributes.attr_clr = libc::MOUNT_ATTR_RDONLY;
    }
    // SAFETY: path and attributes live until the call returns, and the size is that of the attributes.
    let outcome = unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            libc::AT_FDCWD,
            path.as_ptr(),
            libc::AT_RECURSIVE,
            &raw const attributes,
            size_of::<libc::mount_attr>(),
        )
    };
    if outcome == 0 {
        Ok(())
    } else {
        Err(rustix::io::Errno::from_io_error(&io::Error::last_os_error()).unwrap_or(rustix::io::Errno::INVAL))
    }
}

/// The same as arguments for bubblewrap.
pub(super) fn for_bubblewrap(plan: &Plan) -> io::Result<Vec<OsString>> {
    let mut args: Vec<OsString> = Vec::new();
    let mut add = |words: &[&str], paths: &[&Path]| {
        args.extend(words.iter().map(OsString::from));
        args.extend(paths.iter().map(|path| path.as_os_str().to_owned()));
    };
    let root = Path::new("/");
    match &plan.sandbox {
        None => add(&["--dev-bind"], &[root, root]),
        Some(Sandbox { writable }) => {
            add(&["--ro-bind"], &[root, root]);
            add(&["--dev-bind"], &[Path::new("/dev"), Path::new("/dev")]);
            let private: Vec<PathBuf> = PRIVATE
                .map(PathBuf::from)
                .into_iter()
                .filter(|place| place.is_dir())
                .collect();
            for place in &private {
                add(&["--tmpfs"], &[place]);
            }
            for folder in writable {
                add(&["--bind"], &[folder, folder]);
            }
            let here = std::env::current_dir()?;
            add(&["--chdir"], &[&here]);
        }
    }
    add(&["--proc"], &[Path::new("/proc")]);
    for folder in plan.hidden.iter().chain(&plan.emptied) {
        add(&["--tmpfs"], &[folder]);
    }
    for folder in &plan.hidden {
        add(&["--remount-ro"], &[folder]);
    }
    Ok(args)
}
