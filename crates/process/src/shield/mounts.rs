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

/// Places that a sandboxed agent has for itself. Services of the machine have their sockets in the last two.
const PRIVATE: [&str; 5] = ["/tmp", "/var/tmp", "/dev/shm", "/run", "/var/run"];

/// What programs need of those, as it is outside: where some systems have all of their programs.
const KEPT: [&str; 2] = ["/run/current-system", "/run/opengl-driver"];

/// The private places that this system has, each once.
fn private() -> Vec<PathBuf> {
    let real = PRIVATE
        .iter()
        .filter_map(|place| Path::new(place).canonicalize().ok());
    let mut places: Vec<PathBuf> = real.filter(|place| place.is_dir()).collect();
    places.sort_unstable();
    places.dedup();
    places
}

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
    if let Some(sandbox) = &plan.sandbox {
        for path in sandbox.protected.iter().filter(|path| path.exists()) {
            mount_bind_recursive(path, path)
                .and_then(|()| set_read_only(path, true))
                .map_err(|error| {
                    io::Error::other(format!("{} can't be protected: {error}", path.display()))
                })?;
        }
        for socket in sockets()? {
            mount_bind_recursive(NOTHING, &socket).map_err(|error| {
                io::Error::other(format!("{} can't be hidden: {error}", socket.display()))
            })?;
        }
    }
    Ok(())
}

/// What stands in place of a file that is hidden.
const NOTHING: &str = "/dev/null";

/// The sockets of the machine's services that can still be reached by a path. A file system that can't be written to does not
/// keep anyone from speaking to those, and some of them do what they are told: Docker, systemd, an agent with keys.
fn sockets() -> io::Result<Vec<PathBuf>> {
    use std::os::unix::fs::FileTypeExt as _;
    let table = std::fs::read("/proc/net/unix")?;
    let lines = table.split(|byte| *byte == b'\n').skip(1);
    let mut paths: Vec<PathBuf> = lines
        .filter_map(|line| {
            let start = memchr::memchr(b'/', line)?;
            Some(PathBuf::from(std::ffi::OsStr::from_bytes(&line[start..])))
        })
        .filter(|path| {
            let found = path.symlink_metadata();
            found.is_ok_and(|found| found.file_type().is_socket())
        })
        .collect();
    paths.sort_unstable();
    paths.dedup();
    Ok(paths)
}

/// Keeps root's agents from changing the kernel's settings, which belong to the whole machine.
pub(super) fn protect_kernel() -> io::Result<()> {
    for place in KERNEL.map(Path::new).into_iter().filter(|place| place.exists()) {
        mount_bind_recursive(place, place)
            .and_then(|()| set_read_only(place, true))
            .map_err(|error| io::Error::other(format!("{} can't be protected: {error}", place.display())))?;
    }
    Ok(())
}

const KERNEL: [&str; 4] = ["/proc/sys", "/proc/sysrq-trigger", "/proc/irq", "/proc/bus"];

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
    let mut kept = Vec::new();
    for place in KEPT.map(Path::new).into_iter().filter(|place| place.exists()) {
        // Links into the places where the programs are.
        let flags = OFlags::PATH | OFlags::CLOEXEC;
        kept.push((place, File::from(rustix::fs::open(place, flags, Mode::empty())?)));
    }
    set_read_only(Path::new("/"), true)
        .map_err(|error| io::Error::other(format!("the file system can't be closed: {error}")))?;
    set_read_only(Path::new("/proc"), false)?;
    for place in private() {
        empty(&place, MountFlags::empty(), c"mode=1777")?;
    }
    for (place, handle) in kept {
        let target = std::fs::read_link(format!("/proc/self/fd/{}", handle.as_raw_fd()))?;
        std::os::unix::fs::symlink(target, place)?;
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
        Some(Sandbox { writable, .. }) => {
            add(&["--ro-bind"], &[root, root]);
            add(&["--dev-bind"], &[Path::new("/dev"), Path::new("/dev")]);
            let private = private();
            for place in &private {
                add(&["--tmpfs"], &[place]);
            }
            for place in KEPT.map(Path::new) {
                if let Ok(target) = place.canonicalize() {
                    add(&["--symlink"], &[&target, place]);
                }
            }
            for folder in writable {
                add(&["--bind"], &[folder, folder]);
            }
            let here = std::env::current_dir()?;
            add(&["--chdir"], &[&here]);
        }
    }
    add(&["--proc"], &[Path::new("/proc")]);
    if plan.sandbox.is_some() {
        for place in KERNEL.map(Path::new).into_iter().filter(|place| place.exists()) {
            add(&["--ro-bind"], &[place, place]);
        }
    }
    // For root bubblewrap makes no user namespace, and root could undo the mounts.
    let dropped = match &plan.sandbox {
        Some(_) => "ALL",
        None => "CAP_SYS_ADMIN",
    };
    add(&["--cap-drop", dropped], &[]);
    for folder in plan.hidden.iter().chain(&plan.emptied) {
        add(&["--tmpfs"], &[folder]);
    }
    for folder in &plan.hidden {
        add(&["--remount-ro"], &[folder]);
    }
    if let Some(sandbox) = &plan.sandbox {
        for path in sandbox.protected.iter().filter(|path| path.exists()) {
            add(&["--ro-bind"], &[path, path]);
        }
        let private = private();
        let covered = |path: &PathBuf| {
            let places = private.iter().chain(&plan.hidden).chain(&plan.emptied);
            let mut places = places.filter(|place| path.starts_with(place));
            places.next().is_some() && !sandbox.writable.iter().any(|folder| path.starts_with(folder))
        };
        for socket in sockets()?.iter().filter(|path| !covered(path)) {
            add(&["--ro-bind"], &[Path::new(NOTHING), socket]);
        }
    }
    Ok(args)
}
