//! What makes the shield where the kernel does not let us: the system's own bubblewrap.

use anyhow::{Context, Result};

use super::system;
use crate::run;

pub(super) fn install() -> Result<()> {
    if !cfg!(target_os = "linux") || run::which("bwrap").is_some() {
        return Ok(());
    }
    system::install("bubblewrap", &["bubblewrap"])?;
    run::which("bwrap")
        .map(drop)
        .context("the package manager installed `bubblewrap`, but there is no `bwrap`")
}
