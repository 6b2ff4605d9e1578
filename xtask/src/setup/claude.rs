//! The real Claude Code, in the versions that the tests cover, from npm: platform packages with a native executable,
//! and for an old version the package that runs with Node.js.

use std::path::{Path, PathBuf};

use anyhow::Result;

use super::npm::{Program, platform};
use crate::project::Project;

/// The newest version, the last one that accepts `--sdk-url` for any host, and an old one whose transcripts users still
/// have; with the variables that tests read.
pub(super) const VERSIONS: [(&str, &str); 3] = [
    ("2.1.325", "TILLER_TEST_CLAUDE_325"),
    ("2.1.113", "TILLER_TEST_CLAUDE_113"),
    (BEFORE_PLATFORM_PACKAGES, "TILLER_TEST_CLAUDE_49"),
];

/// Its only package has no native executable.
const BEFORE_PLATFORM_PACKAGES: &str = "2.1.49";

pub(super) fn install(project: &Project, version: &str) -> Result<PathBuf> {
    let package = if version == BEFORE_PLATFORM_PACKAGES {
        "@anthropic-ai/claude-code".to_owned()
    } else {
        format!("@anthropic-ai/claude-code-{}", platform("win32")?)
    };
    let program = Program {
        title: "Claude Code",
        folder: "claude",
        package,
        version,
        executable,
    };
    program.install(project)
}

fn executable(package: &Path) -> PathBuf {
    let native = if cfg!(windows) { "claude.exe" } else { "claude" };
    let script = package.join("cli.js");
    if script.is_file() {
        script
    } else {
        package.join(native)
    }
}
