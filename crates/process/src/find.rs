//! Finding a program, and the environment that programs are started with.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// The executable that `program` names: itself if it is a path, otherwise the first of that name in `PATH`.
pub fn find_program(program: &Path) -> Option<PathBuf> {
    if program.components().count() > 1 {
        return is_executable(program).then(|| program.to_owned());
    }
    let path = std::env::var_os("PATH")?;
    let mut candidates = std::env::split_paths(&path).map(|folder| folder.join(program));
    candidates.find(|candidate| is_executable(candidate))
}

/// This process's environment without the variables that would let an agent act as the server or as its user there.
pub fn inherited_environment() -> BTreeMap<OsString, OsString> {
    let is_ours = |name: &OsString| name == "CLAUDECODE" || name.to_string_lossy().starts_with("TILLER_");
    std::env::vars_os().filter(|(name, _)| !is_ours(name)).collect()
}

#[cfg(unix)]
fn is_executable(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt as _;
    path.metadata()
        .is_ok_and(|metadata| metadata.is_file() && metadata.permissions().mode() & 0o111 != 0)
}

#[cfg(not(unix))]
fn is_executable(path: &Path) -> bool {
    path.is_file()
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn a_program_is_an_executable_file() {
        assert!(find_program(Path::new("sh")).is_some_and(|path| path.is_absolute()));
        assert_eq!(find_program(Path::new("/bin/sh")), Some("/bin/sh".into()));
        for other in [
            "no-such-program",
            concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml"),
            "/bin",
            "",
        ] {
            assert_eq!(find_program(Path::new(other)), None, "{other}");
        }
    }
}
