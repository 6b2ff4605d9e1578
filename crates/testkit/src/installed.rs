//! Finds the programs that tests drive: the real CLI, opencode, and a Python interpreter with the official SDK.
//!
//! `cargo xtask setup` installs them into the user's cache folder, and environment variables may point elsewhere. A
//! missing program is an error that says how to get it, never a reason to skip a test.

use std::env;
use std::path::PathBuf;

/// The versions of the real CLI that the tests cover.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Claude {
    /// The newest one.
    V2_1_325,
    /// The last one that accepts `--sdk-url` for any host.
    V2_1_113,
    /// An old one, run with Node.js, whose transcripts users still have.
    V2_1_49,
}

/// A program that the tests need is missing.
#[derive(Debug, thiserror::Error)]
#[error("{what} is not at {path}: {remedy}", path = path.display())]
pub struct Missing {
    what: String,
    path: PathBuf,
    remedy: String,
}

impl Claude {
    /// All versions that sessions may run, for tests that must hold for all of them.
    pub const ALL: [Self; 2] = [Self::V2_1_325, Self::V2_1_113];

    /// All versions whose transcripts are read.
    pub const WITH_TRANSCRIPTS: [Self; 3] = [Self::V2_1_325, Self::V2_1_113, Self::V2_1_49];

    /// The version as `claude --version` begins.
    pub const fn version(self) -> &'static str {
        match self {
            Self::V2_1_325 => "2.1.325",
            Self::V2_1_113 => "2.1.113",
            Self::V2_1_49 => "2.1.49",
        }
    }

    /// The executable, which is checked to exist; one that ends in `.js` is run with Node.js.
    pub fn executable(self) -> Result<PathBuf, Missing> {
        let variable = match self {
            Self::V2_1_325 => "TILLER_TEST_CLAUDE_325",
            Self::V2_1_113 => "TILLER_TEST_CLAUDE_113",
            Self::V2_1_49 => "TILLER_TEST_CLAUDE_49",
        };
        // One package per platform, and only this machine's is installed.
        let packages = cache_folder()
            .join("claude")
            .join(self.version())
            .join("node_modules/@anthropic-ai");
        let cached = std::fs::read_dir(&packages)
            .into_iter()
            .flatten()
            .flatten()
            .flat_map(|package| ["claude", "cli.js"].map(|name| package.path().join(name)))
            .find(|executable| executable.is_file())
            .unwrap_or(packages);
        find(format!("Claude Code {}", self.version()), variable, cached)
    }
}

/// opencode, which speaks the Agent Client Protocol.
pub fn opencode() -> Result<PathBuf, Missing> {
    // One package per platform, and only this machine's is installed.
    let packages = cache_folder().join("opencode/1.18.33/node_modules");
    let cached = std::fs::read_dir(&packages)
        .into_iter()
        .flatten()
        .flatten()
        .map(|package| package.path().join("bin/opencode"))
        .find(|executable| executable.is_file())
        .unwrap_or(packages);
    find("opencode 1.18.33".to_owned(), "TILLER_TEST_OPENCODE", cached)
}

/// The Python interpreter that has `claude-agent-sdk` installed.
pub fn python() -> Result<PathBuf, Missing> {
    find(
        "Python with claude-agent-sdk".to_owned(),
        "TILLER_TEST_PYTHON",
        cache_folder().join("python/bin/python"),
    )
}

/// The scripted CLI (`scripted-claude`), which Cargo puts beside the tests of this workspace when it builds them.
pub fn scripted_claude() -> Result<PathBuf, Missing> {
    beside_tests("The scripted CLI", "scripted-claude")
}

/// The scripted agent that speaks the Agent Client Protocol (`scripted-acp`), found in the same way.
pub fn scripted_acp() -> Result<PathBuf, Missing> {
    beside_tests("The scripted ACP agent", "scripted-acp")
}

fn beside_tests(what: &str, name: &str) -> Result<PathBuf, Missing> {
    let beside_tests = env::current_exe()
        .ok()
        .and_then(|test| Some(test.parent()?.parent()?.join(name)))
        .unwrap_or_default();
    if beside_tests.is_file() {
        Ok(beside_tests)
    } else {
        Err(Missing {
            what: what.to_owned(),
            path: beside_tests,
            remedy: "run `cargo build -p tiller-testkit`".to_owned(),
        })
    }
}

fn find(what: String, variable: &'static str, cached: PathBuf) -> Result<PathBuf, Missing> {
    let path = env::var_os(variable).map_or(cached, PathBuf::from);
    if path.is_file() {
        Ok(path)
    } else {
        Err(Missing {
            what,
            path,
            remedy: format!("run `cargo xtask setup`, or set {variable}"),
        })
    }
}

fn cache_folder() -> PathBuf {
    env::var_os("XDG_CACHE_HOME")
        .filter(|folder| !folder.is_empty())
        .map(PathBuf::from)
        .or_else(|| env::home_dir().map(|home| home.join(".cache")))
        .unwrap_or_default()
        .join("tiller")
}
