//! The steps of `cargo xtask test`: quick ones first, so that simple mistakes show early.

use std::ffi::OsString;
use std::fs;

use anyhow::{Context, Result};

use super::{Need, Outcome, Step, Workbench, advisories};
use crate::setup::Part;
use crate::{fuzz, run};

/// For each part that is fuzzed.
const FUZZ_SECONDS: u32 = 4;

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
        what: "what is known against the dependencies: yanked, deprecated, advisories",
        needs: &[],
        run: advisories::check,
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
        name: "fuzz",
        what: "generated input for the code that reads foreign input, for a few seconds (`cargo xtask fuzz` runs longer)",
        needs: &[],
        run: |workbench| passes(fuzz::run_in(workbench.project, workbench.target, FUZZ_SECONDS)),
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
        name: "package",
        what: "the crates of the Rust SDK build from their packages",
        needs: &[],
        run: |workbench| {
            passes(run::quietly(&mut workbench.cargo([
                "package",
                "--locked",
                "--allow-dirty",
                "--quiet",
                "-p",
                "tiller-message",
                "-p",
                "tiller-process",
                "-p",
                "tiller-agent",
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
