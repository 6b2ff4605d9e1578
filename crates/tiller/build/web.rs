//! Builds the web UI in `web/` with npm, only when a source has changed.
//!
//! The executable's build script and xtask both use it, so that they agree on what is up to date and never run npm at
//! the same time in the same folder: the holder of the lock file works, the others wait and then find the work done.

use std::collections::hash_map::DefaultHasher;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::hash::{Hash, Hasher};
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

/// The oldest Node.js that the UI's tools run on: `engines` of web/package.json, which a tidy test compares.
pub(crate) const OLDEST_NODE: (u32, u32) = (20, 19);

const HOW_TO_GET_NODE: &str = "Install Node.js 20.19 or later with npm (your system's package manager, nvm, fnm or \
    nodejs.org), or set TILLER_WEB_DIST to a folder with a ready-built web UI to do without.";

/// Folders and files of `web/` that the built UI does not depend on.
const NOT_SOURCES: &[&str] = &[
    "node_modules",
    "dist",
    "e2e",
    "test-results",
    "playwright-report",
    "coverage",
];

/// Written last: an interrupted npm leaves no stamp.
const STAMP: &str = ".tiller-stamp";

/// The folder of the web UI's sources.
pub(crate) struct WebFolder {
    path: PathBuf,
}

/// The finished UI. Nobody else rebuilds it while this value lives.
pub(crate) struct BuiltWeb {
    pub(crate) dist: PathBuf,
    _lock: File,
}

impl WebFolder {
    pub(crate) fn new(path: PathBuf) -> Self {
        Self { path }
    }

    /// What to watch for changes: the folder's own entries; cargo looks into subfolders by itself.
    pub(crate) fn watched(&self) -> Result<Vec<PathBuf>> {
        entries(&self.path)
    }

    /// Runs `npm install` unless the installed packages are those of package-lock.json.
    pub(crate) fn install_packages(&self) -> Result<()> {
        let _lock = self.lock()?;
        self.install_packages_locked()
    }

    /// Runs `npm run build` (and `npm install` first, if need be) unless the last build was made from the same sources.
    pub(crate) fn build(&self) -> Result<BuiltWeb> {
        let lock = self.lock()?;
        let dist = self.path.join("dist");
        // Read before the build: a file that is saved while it runs triggers the next build.
        let sources = hash_files(&self.path, &self.sources()?)?;
        if !stamp_is(&dist, &sources) {
            self.install_packages_locked()?;
            self.npm(&["run", "build"])?;
            if !dist.join("index.html").is_file() {
                bail!(
                    "`npm run build` ended well but left no index.html in {}",
                    dist.display()
                );
            }
            write_stamp(&dist, &sources)?;
        }
        Ok(BuiltWeb { dist, _lock: lock })
    }

    fn install_packages_locked(&self) -> Result<()> {
        let node = check_node()?;
        let manifests = ["package.json", "package-lock.json"].map(|name| self.path.join(name));
        // Packages may contain binaries for one version of Node.js and one platform.
        let wanted = format!(
            "{} {node} {} {}",
            hash_files(&self.path, &manifests)?,
            std::env::consts::OS,
            std::env::consts::ARCH
        );
        let modules = self.path.join("node_modules");
        if stamp_is(&modules, &wanted) {
            return Ok(());
        }
        // As `npm ci`, this installs what package-lock.json says and leaves it unchanged. But `npm ci` refuses lock
        // files that don't list the binaries for all other platforms, and not every registry has those. A tidy test
        // checks that the lock file agrees with package.json. No package needs its install scripts, so none may run
        // one.
        self.npm(&[
            "install",
            "--no-save",
            "--include=dev",
            "--ignore-scripts",
            "--no-audit",
            "--no-fund",
        ])?;
        write_stamp(&modules, &wanted)
    }

    fn npm(&self, arguments: &[&str]) -> Result<()> {
        let output = Command::new(npm_program())
            .args(arguments)
            .current_dir(&self.path)
            // A developer's `NODE_ENV=development` must not end up in the release executable.
            .env_remove("NODE_ENV")
            .output()
            .with_context(|| format!("npm could not be started. {HOW_TO_GET_NODE}"))?;
        if !output.status.success() {
            bail!(
                "`npm {}` in {} failed ({}):\n{}{}",
                arguments.join(" "),
                self.path.display(),
                output.status,
                String::from_utf8_lossy(&output.stdout),
                String::from_utf8_lossy(&output.stderr),
            );
        }
        Ok(())
    }

    fn lock(&self) -> Result<File> {
        // Beside what npm replaces, not inside: a lock file that is deleted while it is held protects nothing.
        let path = self.path.join(".build.lock");
        let lock = File::options()
            .create(true)
            .append(true)
            .open(&path)
            .with_context(|| format!("{} can't be opened", path.display()))?;
        lock.lock()
            .with_context(|| format!("{} can't be locked", path.display()))?;
        Ok(lock)
    }

    /// Every file that the built UI may depend on, in a fixed order.
    fn sources(&self) -> Result<Vec<PathBuf>> {
        let mut files = Vec::new();
        let mut pending = entries(&self.path)?;
        while let Some(path) = pending.pop() {
            if path.is_dir() {
                pending.extend(entries(&path)?);
            } else if !is_unit_test(&path) {
                files.push(path);
            }
        }
        files.sort();
        Ok(files)
    }
}

pub(crate) fn npm_program() -> &'static str {
    if cfg!(windows) { "npm.cmd" } else { "npm" }
}

/// The version of Node.js, or an error that says what to install.
pub(crate) fn check_node() -> Result<String> {
    let output = Command::new("node")
        .arg("--version")
        .output()
        .map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => anyhow::anyhow!("Node.js is not installed. {HOW_TO_GET_NODE}"),
            _ => anyhow::anyhow!("node could not be started: {error}. {HOW_TO_GET_NODE}"),
        })?;
    let version = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    match major_and_minor(&version) {
        Some(found) if found >= OLDEST_NODE => Ok(version),
        Some(_) => bail!("Node.js {version} is too old. {HOW_TO_GET_NODE}"),
        None => bail!("`node --version` printed {version:?}, which is not a version. {HOW_TO_GET_NODE}"),
    }
}

fn major_and_minor(version: &str) -> Option<(u32, u32)> {
    let mut numbers = version.strip_prefix('v')?.split('.').map(str::parse);
    Some((numbers.next()?.ok()?, numbers.next()?.ok()?))
}

/// The sources directly in a folder: neither hidden nor one of [`NOT_SOURCES`].
fn entries(folder: &Path) -> Result<Vec<PathBuf>> {
    let unreadable = || format!("{} can't be read", folder.display());
    let mut entries = Vec::new();
    for entry in fs::read_dir(folder).with_context(unreadable)? {
        let entry = entry.with_context(unreadable)?;
        let name = entry.file_name();
        let name = name.to_string_lossy();
        if !name.starts_with('.') && !NOT_SOURCES.contains(&name.as_ref()) {
            entries.push(entry.path());
        }
    }
    Ok(entries)
}

fn is_unit_test(path: &Path) -> bool {
    path.file_name()
        .and_then(OsStr::to_str)
        .is_some_and(|name| name.contains(".test."))
}

/// A hash of names and contents. The standard library's hasher may change with a Rust release; that costs one more
/// build, and saves a dependency.
fn hash_files(root: &Path, files: &[PathBuf]) -> Result<String> {
    let mut hasher = DefaultHasher::new();
    for file in files {
        file.strip_prefix(root).unwrap_or(file).hash(&mut hasher);
        fs::read(file)
            .with_context(|| format!("{} can't be read", file.display()))?
            .hash(&mut hasher);
    }
    Ok(format!("{:016x}", hasher.finish()))
}

fn stamp_is(folder: &Path, wanted: &str) -> bool {
    fs::read_to_string(folder.join(STAMP)).is_ok_and(|found| found == wanted)
}

fn write_stamp(folder: &Path, content: &str) -> Result<()> {
    let path = folder.join(STAMP);
    // npm creates no folder if there is nothing to install.
    fs::create_dir_all(folder)
        .and_then(|()| fs::write(&path, content))
        .with_context(|| format!("{} can't be written", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A UI whose build needs nothing but Node.js, and counts how often it ran.
    fn small_web_folder() -> (tempfile::TempDir, WebFolder) {
        let scratch = tempfile::tempdir().unwrap();
        let write = |name: &str, content: &str| fs::write(scratch.path().join(name), content).unwrap();
        write(
            "package.json",
            r#"{"name": "small", "private": true, "scripts": {"build": "node build.mjs"}}"#,
        );
        write(
            "package-lock.json",
            r#"{"name": "small", "lockfileVersion": 3, "packages": {"": {"name": "small"}}}"#,
        );
        write(
            "build.mjs",
            "import fs from 'node:fs';
             fs.rmSync('dist', { recursive: true, force: true });
             fs.mkdirSync('dist');
             fs.copyFileSync('page.html', 'dist/index.html');
             fs.appendFileSync('.builds', 'x');",
        );
        write("page.html", "<!doctype html>");
        let folder = WebFolder::new(scratch.path().to_owned());
        (scratch, folder)
    }

    fn builds(folder: &Path) -> usize {
        fs::read_to_string(folder.join(".builds")).map_or(0, |runs| runs.len())
    }

    #[test]
    fn the_ui_is_built_only_when_a_source_changed() {
        let (scratch, folder) = small_web_folder();
        folder.build().unwrap();
        folder.build().unwrap();
        assert_eq!(builds(scratch.path()), 1);

        fs::write(scratch.path().join("page.test.ts"), "a unit test is no source").unwrap();
        fs::create_dir(scratch.path().join("e2e")).unwrap();
        fs::write(scratch.path().join("e2e/spine.spec.ts"), "nor is a browser test").unwrap();
        folder.build().unwrap();
        assert_eq!(builds(scratch.path()), 1);

        fs::write(
            scratch.path().join("page.html"),
            "<!doctype html><title>new</title>",
        )
        .unwrap();
        let built = folder.build().unwrap();
        assert_eq!(builds(scratch.path()), 2);
        assert!(
            fs::read_to_string(built.dist.join("index.html"))
                .unwrap()
                .contains("new")
        );
        drop(built);

        fs::remove_dir_all(scratch.path().join("dist")).unwrap();
        folder.build().unwrap();
        assert_eq!(builds(scratch.path()), 3);
    }

    #[test]
    fn builds_at_the_same_time_share_one_run_of_npm() {
        let (scratch, folder) = small_web_folder();
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| assert!(folder.build().unwrap().dist.join("index.html").is_file()));
            }
        });
        assert_eq!(builds(scratch.path()), 1);
    }

    #[test]
    fn a_build_that_fails_is_told_with_its_output_and_tried_again() {
        let (scratch, folder) = small_web_folder();
        fs::remove_file(scratch.path().join("page.html")).unwrap();
        for _ in 0..2 {
            let error = folder.build().err().unwrap().to_string();
            assert!(
                error.contains("`npm run build`") && error.contains("ENOENT"),
                "{error}"
            );
        }
    }

    /// These tests run as part of xtask, which is beside `web/`.
    #[test]
    fn the_ui_asks_for_the_same_node_as_we_do() {
        let (major, minor) = OLDEST_NODE;
        let manifest = concat!(env!("CARGO_MANIFEST_DIR"), "/../web/package.json");
        let manifest = fs::read_to_string(manifest).unwrap();
        assert!(
            manifest.contains(&format!(r#""node": ">={major}.{minor}""#)),
            "{manifest}"
        );
        assert!(HOW_TO_GET_NODE.contains(&format!("Node.js {major}.{minor} ")));
    }

    #[test]
    fn versions_are_compared_as_numbers() {
        assert_eq!(major_and_minor("v20.19.5"), Some((20, 19)));
        assert!(major_and_minor("v9.11.2").unwrap() < OLDEST_NODE);
        assert!(major_and_minor("v100.0.0").unwrap() > OLDEST_NODE);
        assert_eq!(major_and_minor("node"), None);
    }
}
