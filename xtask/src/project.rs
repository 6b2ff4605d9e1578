//! Paths: this clone, and the user's cache folder that all clones share.

use std::env;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use crate::target::Target;
use crate::web::WebFolder;

pub(crate) struct Project {
    pub(crate) root: PathBuf,
    /// `tiller` in the user's cache folder.
    pub(crate) cache: PathBuf,
}

impl Project {
    pub(crate) fn find() -> Result<Self> {
        let here = env::var_os("CARGO_MANIFEST_DIR").map_or(env!("CARGO_MANIFEST_DIR").into(), PathBuf::from);
        let root = here
            .parent()
            .context("xtask does not lie in the workspace")?
            .to_owned();
        let cache = env::var_os("XDG_CACHE_HOME")
            .map(PathBuf::from)
            .filter(|folder| folder.is_absolute())
            .or_else(|| env::home_dir().map(|home| home.join(".cache")))
            .context("there is no home folder: set HOME or XDG_CACHE_HOME")?
            .join("tiller");
        fs::create_dir_all(&cache).with_context(|| format!("{} can't be created", cache.display()))?;
        Ok(Self { root, cache })
    }

    pub(crate) fn web(&self) -> WebFolder {
        WebFolder::new(self.web_path())
    }

    pub(crate) fn web_path(&self) -> PathBuf {
        self.root.join("web")
    }

    /// The cargo that runs this program, in this clone, with this target folder.
    pub(crate) fn cargo<I: IntoIterator<Item: AsRef<OsStr>>>(
        &self,
        target: &Target,
        arguments: I,
    ) -> Command {
        let mut command = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
        command
            .args(arguments)
            .current_dir(&self.root)
            .env("CARGO_TARGET_DIR", target.path());
        if target.is_shared() {
            // Otherwise half of the folder would be state for incremental builds of one clone's own crates.
            command.env("CARGO_INCREMENTAL", "0");
        }
        command
    }
}

/// Holds a lock file until it is dropped; prints `waiting` if it has to wait.
pub(crate) fn lock(path: &Path, waiting: &str) -> Result<File> {
    let failed = || format!("{} can't be locked", path.display());
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).with_context(failed)?;
    }
    let file = File::options()
        .create(true)
        .append(true)
        .open(path)
        .with_context(failed)?;
    if file.try_lock().is_err() {
        println!("{waiting}");
        file.lock().with_context(failed)?;
    }
    Ok(file)
}
