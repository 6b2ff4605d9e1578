//! The real Claude Code, in the versions that the tests cover, from npm: platform packages with one native executable each,
//! and, for an old version, the package that runs with Node.js.

use std::env::consts::{ARCH, OS};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::project::Project;
use crate::{run, web};

/// The newest version, the last one that accepts `--sdk-url` for any host, and an old one whose transcripts people still
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
        format!("@anthropic-ai/claude-code-{}", platform()?)
    };
    let folder = project.cache.join("claude").join(version);
    let executable = executable_in(&folder, &package);
    if runs_as(&executable, version) {
        return Ok(executable);
    }

    web::check_node()?;
    println!("Installing Claude Code {version} into {}…", folder.display());
    // Beside its final place, so that a half-made folder never has the final name.
    let half_made = project.cache.join("claude").join(format!("{version}.new"));
    for stale in [&half_made, &folder] {
        if stale.exists() {
            fs::remove_dir_all(stale).with_context(|| format!("{} can't be deleted", stale.display()))?;
        }
    }
    fs::create_dir_all(&half_made).with_context(|| format!("{} can't be created", half_made.display()))?;
    run::npm_install(&half_made, &package, version)?;
    if !runs_as(&executable_in(&half_made, &package), version) {
        bail!("{package}@{version} was installed but does not run on this machine");
    }
    fs::rename(&half_made, &folder).with_context(|| format!("{} can't be created", folder.display()))?;
    Ok(executable_in(&folder, &package))
}

fn executable_in(folder: &Path, package: &str) -> PathBuf {
    let native = if cfg!(windows) { "claude.exe" } else { "claude" };
    let package = folder.join("node_modules").join(package);
    let script = package.join("cli.js");
    if script.is_file() {
        script
    } else {
        package.join(native)
    }
}

/// How npm's packages name this platform.
fn platform() -> Result<String> {
    let os = match OS {
        "macos" => "darwin",
        "windows" => "win32",
        "linux" => "linux",
        other => bail!("there is no Claude Code for {other}"),
    };
    let architecture = match ARCH {
        "x86_64" => "x64",
        "aarch64" => "arm64",
        other => bail!("there is no Claude Code for {other}"),
    };
    // Which libc the machine has, not which one we were built for: a static xtask may run on either.
    let musl = OS == "linux"
        && fs::read_dir("/lib").is_ok_and(|entries| {
            entries
                .flatten()
                .any(|entry| entry.file_name().to_string_lossy().starts_with("ld-musl-"))
        })
        && !Path::new("/etc/debian_version").exists();
    Ok(format!("{os}-{architecture}{}", if musl { "-musl" } else { "" }))
}

fn runs_as(executable: &Path, version: &str) -> bool {
    let mut command = if executable.extension().is_some_and(|extension| extension == "js") {
        let mut node = Command::new("node");
        node.arg(executable);
        node
    } else {
        Command::new(executable)
    };
    executable.is_file() && run::read(command.arg("--version")).is_ok_and(|said| said.starts_with(version))
}
