//! Everything that is shipped is permissively licensed and comes from the public registries. deny.toml says the same to
//! cargo-deny.

use serde_json::Value;

use crate::dependencies::metadata;
use crate::{files, none, root};

const PERMISSIVE: &[&str] = &[
    "0BSD",
    "Apache-2.0",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "BSL-1.0",
    "CC0-1.0",
    "ISC",
    "MIT",
    "MIT-0",
    "OFL-1.1",
    "Unicode-3.0",
    "Unlicense",
    "Zlib",
];

/// Whether an SPDX expression allows a choice of permissive licences only. `a/b` is an old notation of `a OR b`.
fn is_permissive(expression: &str) -> bool {
    let spaced = expression
        .replace('/', " OR ")
        .replace('(', " ( ")
        .replace(')', " ) ");
    let mut words = spaced.split_whitespace().peekable();
    let verdict = any_of(&mut words);
    verdict && words.next().is_none()
}

type Words<'a, 'b> = &'b mut std::iter::Peekable<std::str::SplitWhitespace<'a>>;

fn any_of(words: Words) -> bool {
    let mut verdict = all_of(words);
    while words.next_if_eq(&"OR").is_some() {
        verdict |= all_of(words);
    }
    verdict
}

fn all_of(words: Words) -> bool {
    let mut verdict = one(words);
    while words.next_if_eq(&"AND").is_some() {
        verdict &= one(words);
    }
    verdict
}

fn one(words: Words) -> bool {
    match words.next() {
        Some("(") => {
            let verdict = any_of(words);
            verdict & (words.next() == Some(")"))
        }
        Some(licence) => {
            // An exception only permits more.
            if words.next_if_eq(&"WITH").is_some() {
                words.next();
            }
            PERMISSIVE.contains(&licence)
        }
        None => false,
    }
}

#[test]
fn every_crate_is_permissively_licensed() {
    let metadata = metadata();
    let packages = metadata["packages"].as_array().unwrap();
    assert!(
        packages.len() > 50,
        "cargo lists only {} packages",
        packages.len()
    );
    let findings: Vec<String> = packages
        .iter()
        .filter(|package| !package["license"].as_str().is_some_and(is_permissive))
        .map(|package| {
            format!(
                "{} {}: {}",
                package["name"], package["version"], package["license"]
            )
        })
        .collect();
    none(&findings, "crates whose licence is not on the list");
}

#[test]
fn every_npm_package_in_the_ui_is_permissively_licensed() {
    let packages = npm_packages();
    let findings: Vec<String> = packages
        .iter()
        // Packages that only build and test the UI are not shipped.
        .filter(|(path, package)| {
            !path.is_empty() && package["dev"] != true && package["devOptional"] != true
        })
        .filter(|(_, package)| !package["license"].as_str().is_some_and(is_permissive))
        .map(|(path, package)| format!("{path}: {}", package["license"]))
        .collect();
    none(&findings, "npm packages whose licence is not on the list");
}

/// Each developer configures a registry; an address in a lock file would belong to one machine.
#[test]
fn lock_files_name_no_registry_but_the_public_one() {
    let mut findings: Vec<String> = npm_packages()
        .iter()
        .filter(|(_, package)| package.get("resolved").is_some())
        .map(|(path, _)| format!("package-lock.json: {path} has an address"))
        .collect();
    let cargo_lock = std::fs::read_to_string(root().join("Cargo.lock")).unwrap();
    let public = "source = \"registry+https://github.com/rust-lang/crates.io-index\"";
    let sources = cargo_lock.lines().filter(|line| line.starts_with("source = "));
    findings.extend(
        sources
            .filter(|line| *line != public)
            .map(|line| format!("Cargo.lock: {line}")),
    );
    for file in files() {
        let configures_a_package_manager = [".npmrc", ".cargo/config.toml", "pip.conf", "requirements.txt"]
            .iter()
            .any(|name| file.path.ends_with(name));
        if configures_a_package_manager && file.text.contains("://") {
            findings.push(format!("{} has an address", file.path));
        }
    }
    none(
        &findings,
        "packages come from wherever the developer's machine gets them (npm: omit-lockfile-registry-resolved)",
    );
}

#[test]
fn the_npm_lock_file_is_for_what_package_json_asks_for() {
    let manifest = read_json("web/package.json");
    let packages = npm_packages();
    let (_, locked) = packages.iter().find(|(path, _)| path.is_empty()).unwrap();
    for kind in ["dependencies", "devDependencies", "optionalDependencies"] {
        assert_eq!(
            manifest[kind], locked[kind],
            "run `npm install` in web/ and commit package-lock.json"
        );
    }
}

fn read_json(path: &str) -> Value {
    serde_json::from_str(&std::fs::read_to_string(root().join(path)).unwrap()).unwrap()
}

fn npm_packages() -> Vec<(String, Value)> {
    let lock = read_json("web/package-lock.json");
    let packages = lock["packages"].as_object().unwrap();
    assert!(
        packages.len() > 50,
        "package-lock.json lists only {} packages",
        packages.len()
    );
    packages
        .iter()
        .map(|(path, package)| (path.clone(), package.clone()))
        .collect()
}

#[test]
fn licence_expressions_are_understood() {
    for permissive in [
        "MIT",
        "MIT/Apache-2.0",
        "GPL-2.0-only OR MIT",
        "(MIT OR Apache-2.0) AND Unicode-3.0",
        "Apache-2.0 WITH LLVM-exception OR GPL-3.0-only",
    ] {
        assert!(is_permissive(permissive), "{permissive}");
    }
    for other in [
        "",
        "GPL-3.0-only",
        "MIT AND GPL-2.0-only",
        "MPL-2.0",
        "(MIT OR Apache-2.0) AND GPL-2.0-only",
        "MIT MIT",
    ] {
        assert!(!is_permissive(other), "{other}");
    }
}
