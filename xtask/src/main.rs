//! Developer commands: `cargo xtask COMMAND`.

mod bench;
mod fuzz;
mod project;
mod run;
mod setup;
mod target;
mod test;
#[path = "../../crates/tiller/build/web.rs"]
#[allow(dead_code, reason = "the executable's build script uses the rest")]
mod web;

use std::ffi::OsStr;
use std::fs;
use std::process::ExitCode;

use anyhow::{Context, Result, bail};

use crate::project::Project;

const USAGE: &str = "\
cargo xtask COMMAND

  setup                  installs what the tests need: npm packages, Claude Code, a Python environment, Chromium,
                         bubblewrap
  test [--only STEP…]    runs every check and test, after installing what they need
  gen-types              writes web/src/gen anew from the Rust types
  fuzz [SECONDS]         sends generated input to the code that reads foreign input, for so long each (60)
  bench [NAME]           measures; without a name, lists what can be measured
  dist                   builds the release executable

Steps of `test`, in their order:
";

fn main() -> ExitCode {
    match dispatch() {
        Ok(code) => code,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn dispatch() -> Result<ExitCode> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let project = Project::find()?;
    match arguments.as_slice() {
        ["setup"] => setup::everything(&project)?,
        ["test", selection @ ..] => return test::run(&project, &steps_of(selection)?),
        ["gen-types"] => generate_types(&project)?,
        ["fuzz"] => fuzz::run(&project, 60)?,
        ["fuzz", seconds] => fuzz::run(
            &project,
            seconds.parse().context("`fuzz` takes a number of seconds")?,
        )?,
        ["bench"] => bench::list(&project),
        ["bench", name] => bench::run(&project, name)?,
        [bench::BASELINE] => bench::serve_baseline()?,
        ["dist"] => dist(&project)?,
        [] | ["help" | "--help" | "-h"] => {
            print!("{USAGE}");
            for step in test::STEPS {
                println!("  {:<22} {}", step.name, step.what);
            }
        }
        other => bail!(
            "unknown command `cargo xtask {}`; `cargo xtask help` lists them",
            other.join(" ")
        ),
    }
    Ok(ExitCode::SUCCESS)
}

/// `--only a b`, `--only a --only b` and `--only=a,b` mean the same; without `--only` all steps run.
fn steps_of(selection: &[&str]) -> Result<Vec<&'static test::Step>> {
    if selection.is_empty() {
        return Ok(test::STEPS.iter().collect());
    }
    if !selection[0].starts_with("--only") {
        bail!(
            "unknown argument {:?}; usage: cargo xtask test [--only STEP…]",
            selection[0]
        );
    }
    let names: Vec<&str> = selection
        .iter()
        .flat_map(|argument| {
            argument
                .strip_prefix("--only")
                .unwrap_or(argument)
                .split(['=', ','])
        })
        .filter(|name| !name.is_empty())
        .collect();
    let known = || {
        test::STEPS
            .iter()
            .map(|step| step.name)
            .collect::<Vec<_>>()
            .join(", ")
    };
    if let Some(unknown) = names
        .iter()
        .find(|name| test::STEPS.iter().all(|step| step.name != **name))
    {
        bail!("unknown step {unknown:?}; the steps are {}", known());
    }
    if names.is_empty() {
        bail!("--only needs one or more of {}", known());
    }
    Ok(test::STEPS
        .iter()
        .filter(|step| names.contains(&step.name))
        .collect())
}

fn generate_types(project: &Project) -> Result<()> {
    let target = target::Target::of(project);
    let _turn = target.take_turn(project)?;
    run::show(
        project
            .cargo(
                &target,
                [
                    "test",
                    "--quiet",
                    "--package",
                    "tiller-server",
                    "--test",
                    "generated_types",
                ],
            )
            .env("TILLER_UPDATE", "1"),
    )
}

fn dist(project: &Project) -> Result<()> {
    let target = target::Target::of(project);
    let _turn = target.take_turn(project)?;
    let built = build_release(project, &target)?;
    // The shared folder belongs to the clone that built last; the result is copied to this one.
    let folder = project.root.join("target/dist");
    let kept = folder.join(built.file_name().unwrap_or_else(|| OsStr::new("tiller")));
    fs::create_dir_all(&folder)?;
    fs::copy(&built, &kept).with_context(|| format!("{} can't be written", kept.display()))?;
    println!("{}: {}", kept.display(), megabytes(fs::metadata(&kept)?.len()));
    Ok(())
}

fn build_release(project: &Project, target: &target::Target) -> Result<std::path::PathBuf> {
    run::show(&mut project.cargo(target, ["build", "--release", "--locked", "--package", "tiller"]))?;
    Ok(target.executable("release", "tiller"))
}

#[expect(clippy::cast_precision_loss, reason = "a size for reading")]
fn megabytes(bytes: u64) -> String {
    format!("{:.1} MB", bytes as f64 / 1e6)
}
