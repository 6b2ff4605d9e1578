//! A Python environment with the official Agent SDK, which drives our scripted CLI in a test.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use super::system;
use crate::project::Project;
use crate::run;

/// The Agent SDK asks for it.
const OLDEST_PYTHON: (u32, u32) = (3, 10);

pub(super) fn install(project: &Project) -> Result<PathBuf> {
    let list = project.root.join("crates/testkit/tests/python/requirements.txt");
    let requirements =
        fs::read_to_string(&list).with_context(|| format!("{} can't be read", list.display()))?;
    let folder = project.cache.join("python");
    let python = folder.join(if cfg!(windows) {
        "Scripts/python.exe"
    } else {
        "bin/python"
    });
    // Written last, so that an interrupted installation is repeated. An environment can't be moved, so it is not
    // created under another name.
    let stamp = folder.join("requirements.installed");
    let is_ready = fs::read_to_string(&stamp).is_ok_and(|installed| installed == requirements)
        && run::read(Command::new(&python).arg("--version")).is_ok();
    if is_ready {
        return Ok(python);
    }

    let system_python = find_python()?;
    println!("Making a Python environment in {}…", folder.display());
    make_environment(&system_python, &folder)?;
    run::read(
        Command::new(&python)
            .args([
                "-m",
                "pip",
                "install",
                "--quiet",
                "--disable-pip-version-check",
                "--requirement",
            ])
            .arg(&list),
    )?;
    fs::write(&stamp, requirements).with_context(|| format!("{} can't be written", stamp.display()))?;
    Ok(python)
}

fn find_python() -> Result<PathBuf> {
    if let Some(python) = suitable_python() {
        return Ok(python);
    }
    system::install("Python 3.10 or later", &["python3", "python3-venv"])?;
    suitable_python().context("`python3` is not there or older than 3.10 even after installing it")
}

fn suitable_python() -> Option<PathBuf> {
    let python = run::which("python3").or_else(|| run::which("python"))?;
    let (major, minor) = OLDEST_PYTHON;
    let question = format!("import sys; sys.exit(sys.version_info < ({major}, {minor}))");
    run::read(Command::new(&python).args(["-c", &question]))
        .is_ok()
        .then_some(python)
}

/// Debian and Ubuntu have `venv` in a separate package.
fn make_environment(python: &Path, folder: &Path) -> Result<()> {
    let make = || run::read(Command::new(python).args(["-m", "venv", "--clear"]).arg(folder));
    if let Err(first) = make() {
        if !first.to_string().contains("ensurepip") {
            bail!(first);
        }
        system::install("Python's venv", &["python3-venv"])?;
        make()?;
    }
    Ok(())
}
