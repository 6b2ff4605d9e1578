//! opencode, an agent that speaks the Agent Client Protocol, from npm.

use std::path::{Path, PathBuf};

use anyhow::Result;

use super::npm::{Program, platform};
use crate::project::Project;

const VERSION: &str = "1.18.33";

pub(super) fn install(project: &Project) -> Result<PathBuf> {
    let program = Program {
        title: "opencode",
        folder: "opencode",
        package: format!("opencode-{}", platform("windows")?),
        version: VERSION,
        executable,
    };
    program.install(project)
}

fn executable(package: &Path) -> PathBuf {
    let name = if cfg!(windows) { "opencode.exe" } else { "opencode" };
    package.join("bin").join(name)
}
