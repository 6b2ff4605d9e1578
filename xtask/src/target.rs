//! The target folder that all clones on this machine share, so that only the first one compiles the dependencies.
//!
//! Cargo keys workspace crates by the clone's path, so every clone adds its own copies. Those of deleted clones are
//! removed: `clones/` in the target folder has one file per clone, with its path in the first line and then the hashes
//! of its units. Runs take turns (see [`Target::take_turn`]), so units that no file claims were built by the clone that
//! had the last turn.

use std::collections::HashSet;
use std::env;
use std::fs::{self, File};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::iter;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::project::{Project, lock};

pub(crate) enum Target {
    Shared(PathBuf),
    /// The user's own choice, which is left unchanged.
    Chosen(PathBuf),
}

impl Target {
    pub(crate) fn of(project: &Project) -> Self {
        match env::var_os("CARGO_TARGET_DIR").filter(|folder| !folder.is_empty()) {
            Some(chosen) => Self::Chosen(project.root.join(chosen)),
            None => Self::Shared(project.cache.join("target")),
        }
    }

    pub(crate) fn path(&self) -> &Path {
        match self {
            Self::Shared(path) | Self::Chosen(path) => path,
        }
    }

    pub(crate) fn is_shared(&self) -> bool {
        matches!(self, Self::Shared(_))
    }

    pub(crate) fn executable(&self, profile: &str, name: &str) -> PathBuf {
        self.path()
            .join(profile)
            .join(format!("{name}{}", env::consts::EXE_SUFFIX))
    }

    /// Waits until no other xtask uses this folder, and blocks others until the file is dropped: two clones would
    /// overwrite each other's executables, and two test runs would disturb each other's figures.
    pub(crate) fn take_turn(&self, project: &Project) -> Result<File> {
        let turn = lock(
            &self.path().join("xtask.lock"),
            &format!(
                "Waiting for another cargo xtask that uses {}…",
                self.path().display()
            ),
        )?;
        if self.is_shared() {
            forget_gone_clones(self.path(), &project.root)
                .context("the shared target folder can't be tidied")?;
        }
        Ok(turn)
    }
}

struct Clone {
    file: PathBuf,
    root: PathBuf,
    units: HashSet<String>,
}

fn forget_gone_clones(target: &Path, root: &Path) -> Result<()> {
    let folder = target.join("clones");
    fs::create_dir_all(&folder)?;
    let mut clones = read_clones(&folder)?;
    if !clones.iter().any(|clone| clone.root == root) {
        let mut hasher = DefaultHasher::new();
        root.hash(&mut hasher);
        let file = folder.join(format!("{:016x}", hasher.finish()));
        clones.push(Clone {
            file,
            root: root.to_owned(),
            units: HashSet::new(),
        });
    }

    let last = fs::read_to_string(folder.join("last")).map_or(root.to_owned(), PathBuf::from);
    let claimed: HashSet<String> = clones
        .iter()
        .flat_map(|clone| clone.units.iter().cloned())
        .collect();
    let unclaimed = our_units(target)?
        .into_iter()
        .filter(|unit| !claimed.contains(unit));
    if let Some(builder) = clones.iter_mut().find(|clone| clone.root == last) {
        builder.units.extend(unclaimed);
    }

    let (kept, gone): (Vec<_>, Vec<_>) = clones
        .into_iter()
        .partition(|clone| clone.root.join("Cargo.toml").is_file());
    for clone in &kept {
        let root = clone.root.display().to_string();
        let lines: Vec<&str> = iter::once(&root)
            .chain(&clone.units)
            .map(String::as_str)
            .collect();
        fs::write(&clone.file, lines.join("\n"))?;
    }
    delete_units(
        target,
        &gone
            .iter()
            .flat_map(|clone| clone.units.iter().map(String::as_str))
            .collect(),
    )?;
    for clone in &gone {
        println!(
            "Deleted from the shared target folder what {} had built.",
            clone.root.display()
        );
        if clone.file.exists() {
            fs::remove_file(&clone.file)?;
        }
    }
    fs::write(folder.join("last"), root.display().to_string())?;
    Ok(())
}

fn read_clones(folder: &Path) -> Result<Vec<Clone>> {
    let mut clones = Vec::new();
    for file in list(folder)? {
        if file.file_name().is_some_and(|name| name == "last") {
            continue;
        }
        let content = fs::read_to_string(&file)?;
        let mut lines = content.lines().map(str::to_owned);
        let root = lines.next().unwrap_or_default().into();
        clones.push(Clone {
            file,
            root,
            units: lines.collect(),
        });
    }
    Ok(clones)
}

/// The hashes of everything built from the workspace's own packages.
fn our_units(target: &Path) -> Result<HashSet<String>> {
    let mut units = HashSet::new();
    for profile in ["debug", "release"] {
        for unit in list(&target.join(profile).join(".fingerprint"))? {
            let name = unit
                .file_name()
                .unwrap_or_default()
                .to_string_lossy()
                .into_owned();
            if let Some((package, hash)) = name.rsplit_once('-')
                && (package.starts_with("tiller") || package == "xtask")
            {
                units.insert(hash.to_owned());
            }
        }
    }
    Ok(units)
}

fn delete_units(target: &Path, units: &HashSet<&str>) -> Result<()> {
    if units.is_empty() {
        return Ok(());
    }
    for profile in ["debug", "release"] {
        for folder in [".fingerprint", "build", "deps"] {
            for path in list(&target.join(profile).join(folder))? {
                // `name-hash`, `name-hash.d`, `libname-hash.rmeta`, `name-hash.part.rcgu.o`
                let name = path.file_name().unwrap_or_default().to_string_lossy();
                let stem = name.split('.').next().unwrap_or_default();
                if !stem
                    .rsplit_once('-')
                    .is_some_and(|(_, hash)| units.contains(hash))
                {
                    continue;
                }
                if path.is_dir() {
                    fs::remove_dir_all(&path)
                } else {
                    fs::remove_file(&path)
                }
                .with_context(|| format!("{} can't be deleted", path.display()))?;
            }
        }
    }
    Ok(())
}

/// The entries of a folder; empty if it does not exist.
fn list(folder: &Path) -> Result<Vec<PathBuf>> {
    if !folder.is_dir() {
        return Ok(Vec::new());
    }
    let entries = fs::read_dir(folder).with_context(|| format!("{} can't be read", folder.display()))?;
    entries.map(|entry| Ok(entry?.path())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The files that one unit leaves in a target folder, in cargo's layout.
    fn build(target: &Path, package: &str, hash: &str) {
        let debug = target.join("debug");
        fs::create_dir_all(debug.join(".fingerprint").join(format!("{package}-{hash}"))).unwrap();
        fs::create_dir_all(debug.join("deps")).unwrap();
        let name = package.replace('-', "_");
        for file in [
            format!("{name}-{hash}.d"),
            format!("lib{name}-{hash}.rlib"),
            format!("{name}-{hash}"),
        ] {
            fs::write(debug.join("deps").join(file), "").unwrap();
        }
    }

    fn built(target: &Path) -> Vec<String> {
        let mut names: Vec<String> = [".fingerprint", "deps"]
            .iter()
            .flat_map(|folder| list(&target.join("debug").join(folder)).unwrap())
            .map(|path| path.file_name().unwrap().to_string_lossy().into_owned())
            .collect();
        names.sort();
        names
    }

    fn clone(folder: &Path) -> PathBuf {
        fs::create_dir_all(folder).unwrap();
        fs::write(folder.join("Cargo.toml"), "").unwrap();
        folder.to_owned()
    }

    #[test]
    fn units_of_deleted_clones_are_removed_and_others_are_kept() {
        let scratch = tempfile::tempdir().unwrap();
        let target = scratch.path().join("target");
        let first = clone(&scratch.path().join("first"));
        let second = clone(&scratch.path().join("second"));

        forget_gone_clones(&target, &first).unwrap();
        build(&target, "tiller-core", "1111");
        build(&target, "tokio", "aaaa");
        forget_gone_clones(&target, &second).unwrap();
        build(&target, "tiller-core", "2222");
        build(&target, "xtask", "3333");
        let everything = built(&target);

        forget_gone_clones(&target, &second).unwrap();
        assert_eq!(built(&target), everything, "both clones are alive");

        fs::remove_dir_all(&first).unwrap();
        forget_gone_clones(&target, &second).unwrap();
        let left = built(&target);
        assert!(!left.iter().any(|name| name.contains("1111")), "{left:?}");
        assert_eq!(left.len(), everything.len() - 4, "{left:?}");

        fs::remove_dir_all(&second).unwrap();
        let third = clone(&scratch.path().join("third"));
        forget_gone_clones(&target, &third).unwrap();
        assert_eq!(
            built(&target),
            ["libtokio-aaaa.rlib", "tokio-aaaa", "tokio-aaaa", "tokio-aaaa.d"]
        );
    }
}
