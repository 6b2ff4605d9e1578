//! Runs other programs.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::{env, fmt};

use anyhow::{Context, Result, bail};

/// Runs a program with visible output, after a line with its command.
pub(crate) fn show(command: &mut Command) -> Result<()> {
    println!("$ {}", Line(command));
    let status = command.status().with_context(|| could_not_start(command))?;
    if !status.success() {
        bail!("`{}` failed ({status})", Line(command));
    }
    Ok(())
}

/// Runs a program with verbose output, which is shown only if it fails.
pub(crate) fn quietly(command: &mut Command) -> Result<()> {
    println!("$ {}", Line(command));
    read(command).map(drop)
}

/// Runs a program and returns its output, which is shown only if it fails.
pub(crate) fn read(command: &mut Command) -> Result<String> {
    let output = command
        .stdin(Stdio::null())
        .output()
        .with_context(|| could_not_start(command))?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_owned();
    if !output.status.success() {
        bail!(
            "`{}` failed ({}): {}\n{}",
            Line(command),
            output.status,
            text(&output.stdout),
            text(&output.stderr)
        );
    }
    Ok(text(&output.stdout))
}

/// Installs an npm package into its own folder, without running its scripts.
pub(crate) fn npm_install(folder: &Path, package: &str, version: &str) -> Result<()> {
    read(
        Command::new(crate::web::npm_program())
            .args([
                "install",
                "--no-save",
                "--no-package-lock",
                "--ignore-scripts",
                "--no-audit",
                "--no-fund",
            ])
            .arg("--prefix")
            .arg(folder)
            .arg(format!("{package}@{version}"))
            .current_dir(folder),
    )
    .map(drop)
}

/// Finds a program on PATH.
pub(crate) fn which(program: &str) -> Option<PathBuf> {
    env::split_paths(&env::var_os("PATH")?)
        .map(|folder| folder.join(program))
        .find(|path| is_executable(path))
}

#[cfg(unix)]
fn is_executable(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    path.metadata()
        .is_ok_and(|metadata| metadata.is_file() && metadata.permissions().mode() & 0o111 != 0)
}

#[cfg(not(unix))]
fn is_executable(path: &Path) -> bool {
    path.is_file()
}

fn could_not_start(command: &Command) -> String {
    format!("{} could not be started", command.get_program().to_string_lossy())
}

/// A command as one would type it.
struct Line<'a>(&'a Command);

impl fmt::Display for Line<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let program = Path::new(self.0.get_program())
            .file_name()
            .unwrap_or(OsStr::new("?"));
        write!(formatter, "{}", program.to_string_lossy())?;
        self.0
            .get_args()
            .try_for_each(|argument| write!(formatter, " {}", argument.to_string_lossy()))
    }
}
