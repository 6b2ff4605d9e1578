//! Programs from npm: one package of one version, in a folder of its own.

use std::env::consts::{ARCH, OS};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::project::Project;
use crate::{run, web};

/// A program that tests start.
pub(super) struct Program<'a> {
    pub(super) title: &'a str,
    /// The folder of all its versions, in the cache folder.
    pub(super) folder: &'a str,
    pub(super) package: String,
    pub(super) version: &'a str,
    /// Finds the executable in the package's folder.
    pub(super) executable: fn(&Path) -> PathBuf,
}

impl Program<'_> {
    /// Installs the program unless it is installed and runs. Returns the path of its executable.
    pub(super) fn install(&self, project: &Project) -> Result<PathBuf> {
        let (title, version) = (self.title, self.version);
        let versions = project.cache.join(self.folder);
        let folder = versions.join(version);
        let executable = self.executable_in(&folder);
        if self.runs(&executable) {
            return Ok(executable);
        }

        web::check_node()?;
        println!("Installing {title} {version} into {}…", folder.display());
        // In a temporary folder, so that a partial installation never has the final name.
        let half_made = versions.join(format!("{version}.new"));
        for stale in [&half_made, &folder] {
            if stale.exists() {
                fs::remove_dir_all(stale).with_context(|| format!("{} can't be deleted", stale.display()))?;
            }
        }
        fs::create_dir_all(&half_made)
            .with_context(|| format!("{} can't be created", half_made.display()))?;
        run::npm_install(&half_made, &self.package, version)?;
        if !self.runs(&self.executable_in(&half_made)) {
            bail!(
                "{}@{version} was installed but does not run on this machine",
                self.package
            );
        }
        fs::rename(&half_made, &folder).with_context(|| format!("{} can't be created", folder.display()))?;
        Ok(self.executable_in(&folder))
    }

    fn executable_in(&self, folder: &Path) -> PathBuf {
        (self.executable)(&folder.join("node_modules").join(&self.package))
    }

    fn runs(&self, executable: &Path) -> bool {
        let mut command = if executable.extension().is_some_and(|extension| extension == "js") {
            let mut node = Command::new("node");
            node.arg(executable);
            node
        } else {
            Command::new(executable)
        };
        executable.is_file()
            && run::read(command.arg("--version")).is_ok_and(|said| said.starts_with(self.version))
    }
}

/// The platform's name in npm packages. Packages have different names for Windows.
pub(super) fn platform(windows: &str) -> Result<String> {
    let os = match OS {
        "macos" => "darwin",
        "windows" => windows,
        "linux" => "linux",
        other => bail!("there is no package for {other}"),
    };
    let architecture = match ARCH {
        "x86_64" => "x64",
        "aarch64" => "arm64",
        other => bail!("there is no package for {other}"),
    };
    // The libc of the machine, not the one that xtask was built for: a static xtask may run on either.
    let musl = OS == "linux"
        && fs::read_dir("/lib").is_ok_and(|entries| {
            entries
                .flatten()
                .any(|entry| entry.file_name().to_string_lossy().starts_with("ld-musl-"))
        })
        && !Path::new("/etc/debian_version").exists();
    Ok(format!("{os}-{architecture}{}", if musl { "-musl" } else { "" }))
}
