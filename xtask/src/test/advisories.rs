//! What is known against the dependencies, as far as it can be had without another service.
//!
//! RustSec's database is in no package registry: only cargo-deny, where it is installed, fetches it. What the registries themselves
//! say is checked everywhere: that no crate was yanked, and that no npm package is deprecated. `npm audit` is asked where the registry
//! answers it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use super::{Outcome, Workbench};
use crate::run;

pub(super) fn check(workbench: &Workbench) -> Result<Outcome> {
    let mut found = Vec::new();
    for lock in ["Cargo.lock", "fuzz/Cargo.lock"] {
        found.extend(yanked(workbench, lock)?);
    }
    found.extend(deprecated(
        &workbench.project.web_path().join("package-lock.json"),
    )?);
    npm_audit(workbench, &mut found)?;
    if !found.is_empty() {
        bail!("update or replace these dependencies:\n  {}", found.join("\n  "));
    }
    if run::which(&format!("cargo-deny{}", std::env::consts::EXE_SUFFIX)).is_none() {
        return Ok(Outcome::NotHere(
            "cargo-deny is not installed, so RustSec's advisories were not checked. Checked: no crate is yanked, no npm \
             package is deprecated (the tidy test checks licences and sources)",
        ));
    }
    run::show(&mut workbench.cargo(["deny", "--workspace", "check"]))?;
    Ok(Outcome::Passed)
}

/// Crates of a lock file that their makers have withdrawn, by cargo's copy of the registry's index.
fn yanked(workbench: &Workbench, lock: &str) -> Result<Vec<String>> {
    let path = workbench.project.root.join(lock);
    let packages =
        registry_packages(&fs::read_to_string(&path).with_context(|| format!("can't read {lock}"))?);
    let mut fetch = workbench.cargo(["fetch", "--locked", "--manifest-path"]);
    run::read(fetch.arg(path.with_file_name("Cargo.toml")))?;
    let folders = index_folders()?;
    let (mut known, mut yanked) = (0, Vec::new());
    for (name, version) in &packages {
        let entries = folders
            .iter()
            .filter_map(|folder| fs::read(folder.join(index_path(name))).ok());
        let state = entries
            .map(|entry| is_yanked(&entry, version))
            .find(Option::is_some)
            .flatten();
        known += usize::from(state.is_some());
        if state == Some(true) {
            yanked.push(format!("{name} {version} of {lock} was yanked"));
        }
    }
    println!(
        "{lock}: {known} of {} crates found in the index, {} yanked",
        packages.len(),
        yanked.len()
    );
    if known == 0 {
        bail!("cargo's index has none of the crates of {lock}: its format may have changed");
    }
    Ok(yanked)
}

/// Name and version of every package of a Cargo.lock that comes from a registry.
fn registry_packages(lock: &str) -> Vec<(String, String)> {
    let field = |block: &str, name: &str| {
        let line = block
            .lines()
            .find_map(|line| line.strip_prefix(&format!("{name} = \"")))?;
        line.strip_suffix('"').map(str::to_owned)
    };
    lock.split("[[package]]")
        .filter(|block| field(block, "source").is_some_and(|source| source.starts_with("registry+")))
        .filter_map(|block| Some((field(block, "name")?, field(block, "version")?)))
        .collect()
}

fn index_folders() -> Result<Vec<PathBuf>> {
    let home = std::env::var_os("CARGO_HOME").map(PathBuf::from);
    let home = home.or_else(|| Some(std::env::home_dir()?.join(".cargo")));
    let index = home.context("there is no home folder")?.join("registry/index");
    let folders = fs::read_dir(&index).with_context(|| format!("{} can't be read", index.display()))?;
    Ok(folders
        .flatten()
        .map(|folder| folder.path().join(".cache"))
        .collect())
}

/// Where the index has a crate.
fn index_path(name: &str) -> PathBuf {
    let name = name.to_lowercase();
    match name.len() {
        1 => Path::new("1").join(name),
        2 => Path::new("2").join(name),
        3 => Path::new("3").join(&name[..1]).join(name),
        _ => Path::new(&name[..2]).join(&name[2..4]).join(name),
    }
}

/// Whether a version was yanked. Cargo's copy of an index entry is a header and, for each version, its number and its JSON, all of
/// them ended by a zero byte.
fn is_yanked(entry: &[u8], version: &str) -> Option<bool> {
    let mut parts = entry.split(|byte| *byte == 0);
    parts.find(|part| *part == version.as_bytes())?;
    let json = String::from_utf8_lossy(parts.next()?).replace(": ", ":");
    match (
        json.contains("\"yanked\":true"),
        json.contains("\"yanked\":false"),
    ) {
        (true, false) => Some(true),
        (false, true) => Some(false),
        _ => None,
    }
}

/// npm packages of the lock file that their makers have given up: npm notes it there.
fn deprecated(lock: &Path) -> Result<Vec<String>> {
    let text = fs::read_to_string(lock)?;
    let (mut packages, mut package, mut deprecated) = (0, "", Vec::new());
    for line in text.lines().map(str::trim) {
        if let Some(path) = line.strip_prefix("\"node_modules/") {
            packages += 1;
            package = path.split('"').next().unwrap_or(path);
        }
        if let Some(words) = line.strip_prefix("\"deprecated\": ") {
            deprecated.push(format!("{package} is deprecated: {words}"));
        }
    }
    println!(
        "package-lock.json: {packages} packages, {} deprecated",
        deprecated.len()
    );
    Ok(deprecated)
}

/// What npm's registry knows against the packages, if it can be asked.
fn npm_audit(workbench: &Workbench, found: &mut Vec<String>) -> Result<()> {
    let mut command = Command::new(crate::web::npm_program());
    command
        .args(["audit", "--json"])
        .current_dir(workbench.project.web_path());
    let output = command.output().context("npm can't be run")?;
    let report = String::from_utf8_lossy(&output.stdout);
    if !report.contains("\"auditReportVersion\"") {
        println!("npm audit: the registry does not answer it");
    } else if output.status.success() {
        println!("npm audit: no advisories");
    } else {
        println!("{report}");
        found.push("npm audit has found something, see above".to_owned());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn crates_of_a_registry_are_found_in_a_lock_file() {
        let lock = "version = 4\n\n[[package]]\nname = \"own\"\nversion = \"0.1.0\"\n\n[[package]]\nname = \"serde\"\n\
            version = \"1.0.1\"\nsource = \"registry+https://example.com/index\"\nchecksum = \"00\"\n";
        assert_eq!(
            registry_packages(lock),
            [("serde".to_owned(), "1.0.1".to_owned())]
        );
        for (name, path) in [
            ("a", "1/a"),
            ("ab", "2/ab"),
            ("abc", "3/a/abc"),
            ("Serde", "se/rd/serde"),
        ] {
            assert_eq!(index_path(name), Path::new(path));
        }
    }

    #[test]
    fn a_yanked_version_is_told_from_others() {
        let entry = b"\x03\x02\0\0\0etag\x001.0.0\0{\"vers\":\"1.0.0\",\"yanked\":true}\x001.0.1\0{\"yanked\": false}\0";
        assert_eq!(is_yanked(entry, "1.0.0"), Some(true));
        assert_eq!(is_yanked(entry, "1.0.1"), Some(false));
        assert_eq!(is_yanked(entry, "1.0.2"), None);
    }
}
