//! The browser of the browser tests: the system's own Chromium or Chrome.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result};

use super::system;
use crate::run;

const NAMES: &[&str] = &[
    "chromium",
    "chromium-browser",
    "google-chrome",
    "google-chrome-stable",
];

const MACOS_APPLICATIONS: &[&str] = &[
    "/Applications/Chromium.app/Contents/MacOS/Chromium",
    "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
];

pub(super) fn install() -> Result<PathBuf> {
    if let Some(browser) = find() {
        return Ok(browser);
    }
    system::install("Chromium", &["chromium"])?;
    find().context(
        "the package manager installed `chromium`, but no Chromium runs. Install Chromium or Google Chrome by hand, or set \
         TILLER_TEST_CHROMIUM to its executable",
    )
}

/// The first browser that starts: a launcher without a browser behind it (such as Ubuntu's for its snap) does not
/// count.
fn find() -> Option<PathBuf> {
    NAMES
        .iter()
        .filter_map(|name| run::which(name))
        .chain(
            MACOS_APPLICATIONS
                .iter()
                .map(PathBuf::from)
                .filter(|path| path.is_file()),
        )
        .find(|browser| run::read(Command::new(browser).arg("--version")).is_ok())
}
