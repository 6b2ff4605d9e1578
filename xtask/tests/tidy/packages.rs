//! The crates of the Rust SDK can be published as they stand. `cargo xtask test package` also builds them from their packages.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::dependencies::metadata;
use crate::{none, output};

/// In the order in which they depend on each other.
const PUBLISHED: [&str; 3] = ["tiller-message", "tiller-process", "tiller-agent"];

/// Crates that a program gets with the SDK and no feature of it. It was 59 with everything switched on.
const SMALL: usize = 45;

fn cargo() -> Command {
    Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
}

#[test]
fn the_sdk_can_be_packaged() {
    let folder = tempfile::tempdir().unwrap();
    let mut package = cargo();
    // With what is downloaded already: this must work without a network.
    package.args([
        "package",
        "--offline",
        "--locked",
        "--no-verify",
        "--allow-dirty",
        "--target-dir",
    ]);
    package.arg(folder.path());
    for name in PUBLISHED {
        package.args(["-p", name]);
    }
    output(&mut package);
    let mut wrong = Vec::new();
    for name in PUBLISHED {
        let version = version_of(&metadata(), name);
        let packed = folder.path().join(format!("package/{name}-{version}.crate"));
        let inside = format!("{name}-{version}");
        let files = tar(&packed, &["tzf"], &[]);
        for file in [
            "Cargo.toml",
            "LICENSE-APACHE",
            "LICENSE-MIT",
            "README.md",
            "src/lib.rs",
        ] {
            if !files.lines().any(|line| line == format!("{inside}/{file}")) {
                wrong.push(format!("{name}: the package lacks {file}"));
            }
        }
        if files.contains(&format!("{inside}/tests/")) {
            wrong.push(format!(
                "{name}: the package has tests, which need crates that are not published"
            ));
        }
        let manifest = tar(&packed, &["xzOf"], &[&format!("{inside}/Cargo.toml")]);
        for field in ["description", "keywords", "categories", "license", "rust-version"] {
            if !manifest
                .lines()
                .any(|line| line.starts_with(&format!("{field} = ")))
            {
                wrong.push(format!("{name}: the manifest lacks {field}"));
            }
        }
        for line in manifest
            .lines()
            .filter(|line| line.contains("dependencies.tiller-"))
        {
            let section = manifest.split(line).nth(1).unwrap_or_default();
            let section = section.split("\n[").next().unwrap_or_default();
            if section.contains("path = ") || !section.contains("version = ") {
                wrong.push(format!("{name}: {line} has no version"));
            }
        }
    }
    none(&wrong, "these packages could not be published");
}

/// Only one toolchain is at hand, so this asks what the dependencies promise; clippy looks at our own code.
#[test]
fn the_sdk_needs_no_newer_rust_than_it_says() {
    let metadata = metadata();
    let packages = metadata["packages"].as_array().unwrap();
    let package = |id: &str| packages.iter().find(|package| package["id"] == id).unwrap();
    let mut wrong = Vec::new();
    for name in PUBLISHED {
        let own = packages.iter().find(|package| package["name"] == name).unwrap();
        let promised = numbers(&own["rust_version"]);
        let mut pending = vec![own["id"].as_str().unwrap()];
        let mut seen = BTreeSet::new();
        while let Some(id) = pending.pop() {
            if !seen.insert(id) {
                continue;
            }
            let needed = numbers(&package(id)["rust_version"]);
            if needed > promised {
                wrong.push(format!("{name}: {id} needs Rust {needed:?}"));
            }
            let nodes = metadata["resolve"]["nodes"].as_array().unwrap();
            let node = nodes.iter().find(|node| node["id"] == id).unwrap();
            for used in node["deps"].as_array().unwrap() {
                let kinds = used["dep_kinds"].as_array().unwrap();
                if kinds.iter().any(|kind| kind["kind"] != "dev") {
                    pending.push(used["pkg"].as_str().unwrap());
                }
            }
        }
    }
    none(
        &wrong,
        "dependencies need a newer Rust than the SDK promises (or raise its rust-version)",
    );
}

#[test]
fn the_sdk_is_small_by_default() {
    let tree = output(cargo().args([
        "tree",
        "--offline",
        "--locked",
        "-p",
        "tiller-agent",
        "--edges",
        "normal,build",
        "--prefix",
        "none",
    ]));
    let crates: BTreeSet<&str> = tree.lines().filter_map(|line| line.split(' ').next()).collect();
    assert!(crates.len() <= SMALL, "{} crates: {crates:?}", crates.len());
    for large in ["rmcp", "schemars", "axum", "rusqlite"] {
        assert!(!crates.contains(large), "{large} is there without a feature");
    }
}

fn version_of(metadata: &Value, name: &str) -> String {
    let packages = metadata["packages"].as_array().unwrap();
    let package = packages.iter().find(|package| package["name"] == name).unwrap();
    package["version"].as_str().unwrap().to_owned()
}

/// `1.89` and `1.89.0` are the same.
fn numbers(version: &Value) -> [u32; 3] {
    let mut numbers = [0; 3];
    for (number, text) in numbers
        .iter_mut()
        .zip(version.as_str().unwrap_or_default().split('.'))
    {
        *number = text.parse().unwrap_or_default();
    }
    numbers
}

fn tar(archive: &Path, flags: &[&str], names: &[&str]) -> String {
    output(Command::new("tar").args(flags).arg(archive).args(names))
}
