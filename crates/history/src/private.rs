//! Files and folders that other users of the machine can't read, because they have the content of conversations. On
//! systems without modes, the folder above decides.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io;
use std::path::Path;

/// Creates a folder and its parents. An existing folder is left as it is.
pub(crate) fn make_folder(path: &Path) -> io::Result<()> {
    let mut builder = DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(path)
}

/// Makes a folder, or closes one that is there to others, with the files in it.
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

/// An empty file, which replaces an existing one.
pub(crate) fn create_file(path: &Path) -> io::Result<File> {
    let file = options().write(true).truncate(true).open(path)?;
    close(path);
    Ok(file)
}

/// Makes the file unless it is there, for someone else to open: SQLite lets everyone read what it makes itself, and gives
/// the files beside it the mode that this one has.
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

/// Takes from others what an earlier version has given them. A disk that knows no modes is no reason to do without it.
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
