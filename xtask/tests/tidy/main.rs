//! Rules of this repository that no compiler checks.
#![allow(clippy::unwrap_used, reason = "these are tests, helpers included")]

mod code;
mod dependencies;
mod documents;
mod licences;
mod messages;
mod packages;

use std::path::{Path, PathBuf};
use std::process::Command;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

/// A text file of the repository, with its path from the root in forward slashes.
struct SourceFile {
    path: String,
    text: String,
}

impl SourceFile {
    fn has_extension(&self, extensions: &[&str]) -> bool {
        self.path
            .rsplit_once('.')
            .is_some_and(|(_, extension)| extensions.contains(&extension))
    }
}

/// All text files that are or would be committed.
fn files() -> Vec<SourceFile> {
    let listed =
        output(Command::new("git").args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"]));
    let files: Vec<SourceFile> = listed
        .split('\0')
        .filter(|path| !path.is_empty())
        .filter_map(|path| {
            // A deleted file may not be committed yet; a binary file has no lines to check.
            let text = std::fs::read_to_string(root().join(path)).ok()?;
            Some(SourceFile {
                path: path.to_owned(),
                text,
            })
        })
        .collect();
    assert!(
        files.iter().any(|file| file.path == "Cargo.toml"),
        "git lists no files"
    );
    files
}

fn output(command: &mut Command) -> String {
    let output = command.current_dir(root()).output().unwrap();
    assert!(
        output.status.success(),
        "{command:?}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8(output.stdout).unwrap()
}

/// Fails with all findings, one per line, and the advice.
#[track_caller]
fn none(findings: &[String], advice: &str) {
    assert!(findings.is_empty(), "{advice}:\n  {}\n", findings.join("\n  "));
}
