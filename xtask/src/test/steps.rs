//! The steps of `cargo xtask test`: quick ones first, so that simple mistakes show early.

use std::ffi::OsString;
use std::fs;

use anyhow::{Context, Result};

use super::{Need, Outcome, Step, Workbench};
use crate::run;
use crate::setup::Part;

const WEB: Need = Need::Installed(Part::WebPackages);

pub(crate) const STEPS: &[Step] = &[
    Step {
        name: "fmt",
        what: "Rust is formatted (if files are listed: run `cargo fmt --all`)",
        needs: &[],
        run: |workbench| {
            passes(run::show(
                &mut workbench.cargo(["fmt", "--all", "--", "--check", "-l"]),
            ))
        },
    },
    Step {
        name: "web-format",
        what: "the web UI's sources are formatted",
        needs: &[WEB],
        run: |workbench| passes(run::show(&mut workbench.npm_script("format:check"))),
    },
    Step {
        name: "web-lint",
        what: "lints of the web UI",
        needs: &[WEB],
        run: |workbench| passes(run::show(&mut workbench.npm_script("lint"))),
    },
    Step {
        name: "web-types",
        what: "TypeScript's type check",
        needs: &[WEB],
        run: |workbench| passes(run::show(&mut workbench.npm_script("typecheck"))),
    },
    Step {
        name: "web-unit",
        what: "unit tests of the web UI",
        needs: &[WEB],
        run: |workbench| passes(run::show(&mut workbench.npm_script("test"))),
    },
    Step {
        name: "clippy",
        what: "lints of all crates, without a warning",
        needs: &[WEB],
        run: |workbench| {
            passes(run::show(&mut workbench.cargo([
                "clippy",
                "--locked",
                "--workspace",
                "--all-targets",
                "--",
                "--deny",
                "warnings",
            ])))
        },
    },
    Step {
        name: "deny",
        what: "advisories, licences and sources of dependencies",
        needs: &[],
        run: deny,
    },
    Step {
        name: "rust",
        what: "tests of all crates, with generated files up to date and the code tidy",
        needs: &[
            WEB,
            Need::Installed(Part::Claude),
            Need::Installed(Part::Opencode),
            Need::Installed(Part::Python),
            Need::Installed(Part::Bubblewrap),
            // Tests of the whole executable start these; the tests' own build has test-only features.
            Need::Executables,
        ],
        run: rust_tests,
    },
    Step {
        name: "doc",
        what: "examples in the documentation",
        needs: &[],
        run: |workbench| {
            passes(run::quietly(&mut workbench.cargo([
                "test",
                "--locked",
                "--workspace",
                "--doc",
                "--quiet",
            ])))
        },
    },
    Step {
        name: "e2e",
        what: "browser tests, with the real Claude Code",
        needs: &[
            WEB,
            Need::Installed(Part::Claude),
            Need::Installed(Part::Chromium),
            Need::Executables,
        ],
        run: |workbench| passes(run::show(&mut workbench.npm_script("e2e"))),
    },
];

fn passes(result: Result<()>) -> Result<Outcome> {
    result.map(|()| Outcome::Passed)
}

/// Only if cargo-deny is installed: it takes longer to compile than everything else, and its advisories come over the
/// network. The tidy test always checks licences and sources.
fn deny(workbench: &Workbench) -> Result<Outcome> {
    if run::which(&format!("cargo-deny{}", std::env::consts::EXE_SUFFIX)).is_none() {
        return Ok(Outcome::NotHere(
            "cargo-deny is not installed, so advisories were not checked (the tidy test checks licences and sources)",
        ));
    }
    passes(run::show(&mut workbench.cargo(["deny", "--workspace", "check"])))
}

fn rust_tests(workbench: &Workbench) -> Result<Outcome> {
    if run::read(&mut workbench.cargo(["nextest", "--version"])).is_ok() {
        return passes(run::show(&mut workbench.cargo([
            "nextest",
            "run",
            "--locked",
            "--workspace",
            "--no-fail-fast",
            "--status-level=fail",
            "--final-status-level=slow",
        ])));
    }
    println!(
        "cargo-nextest is not installed: `cargo test` runs the same tests, one executable after the other."
    );
    passes(run::show(&mut workbench.cargo([
        "test",
        "--locked",
        "--workspace",
        "--lib",
        "--bins",
        "--tests",
        "--no-fail-fast",
    ])))
}

/// Two builds on purpose: in one build, cargo would add the testkit's features to the released executable. Copies,
/// because builds of other steps overwrite them.
pub(super) fn build_executables(workbench: &Workbench) -> Result<Vec<(&'static str, OsString)>> {
    let folder = workbench.target.path().join("tested");
    fs::create_dir_all(&folder)?;
    let mut variables = Vec::new();
    for (package, variable) in [
        ("tiller", "TILLER_TEST_BIN"),
        ("tiller-testkit", "TILLER_TEST_TESTKIT"),
    ] {
        run::show(&mut workbench.cargo(["build", "--locked", "--package", package, "--bin", package]))?;
        let built = workbench.target.executable("debug", package);
        let kept = workbench.target.executable("tested", package);
        fs::copy(&built, &kept).with_context(|| format!("{} can't be copied", built.display()))?;
        variables.push((variable, kept.into_os_string()));
    }
    Ok(variables)
}
