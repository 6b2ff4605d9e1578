//! Creates files and folders that other users of the machine can't read, because they contain conversations. On systems
//! without file modes, the parent folder decides.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io;
use std::path::Path;

/// Creates a folder and its parents. An existing folder is left unchanged.
pub(crate) fn make_folder(path: &Path) -> io::Result<()> {
    let mut builder = DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(path)
}

/// Creates a folder, or makes an existing one and its files private.
pub(crate) fn make_or_close_folder(path: &Path) -> io::Result<()> {
    make_folder(path)?;
    close(path);
    for entry in fs::read_dir(path)? {
        let entry = entry?;
        if entry.file_type()?.is_file() {
            close(&entry.path());
        }
    }
    Ok(())
}

/// Creates an empty file, replacing an existing one.
pub(crate) fn create_file(path: &Path) -> io::Result<File> {
    let file = options().write(true).truncate(true).open(path)?;
    close(path);
    Ok(file)
}

/// Creates a file unless it exists, for SQLite to open: SQLite would create it readable for everyone, and gives its
/// other files the same mode.
pub(crate) fn make_file(path: &Path) -> io::Result<()> {
    options().append(true).open(path).map(drop)
}

fn options() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.create(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
}

/// Removes the access of other users that an earlier version gave. A file system without modes is not an error.
fn close(path: &Path) {
    if let Err(error) = take_from_others(path) {
        tracing::warn!(%error, "others may read {}", path.display());
    }
}

#[cfg(unix)]
fn take_from_others(path: &Path) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt as _;
    let mode = fs::metadata(path)?.permissions().mode();
    if mode & 0o077 != 0 {
        fs::set_permissions(path, fs::Permissions::from_mode(mode & 0o700))?;
    }
    Ok(())
}

#[cfg(not(unix))]
fn take_from_others(_path: &Path) -> io::Result<()> {
    Ok(())
}
