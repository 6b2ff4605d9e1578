//! `cargo xtask test`: all checks and tests of the repository, one after the other.
//!
//! All steps run even if one fails, except those that need the failed one; the summary has a line for each. A step that
//! could not run counts as failed.

mod advisories;
mod steps;

use std::ffi::OsString;
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{IsTerminal, stdout};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow};

pub(crate) use self::steps::STEPS;
use crate::project::Project;
use crate::setup::Part;
use crate::target::Target;

pub(crate) struct Step {
    pub(crate) name: &'static str,
    pub(crate) what: &'static str,
    needs: &'static [Need],
    run: fn(&Workbench) -> Result<Outcome>,
}

/// What a step needs.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Need {
    Installed(Part),
    /// The executables `tiller` and `tiller-testkit`.
    Executables,
}

enum Outcome {
    Passed,
    /// A step that only some machines can run, and why this one can't.
    NotHere(&'static str),
}

/// The context of the steps.
struct Workbench<'a> {
    project: &'a Project,
    target: &'a Target,
    /// Environment variables for tests.
    variables: Vec<(&'static str, OsString)>,
    scratch: PathBuf,
}

impl Workbench<'_> {
    fn cargo<const N: usize>(&self, arguments: [&str; N]) -> Command {
        let mut command = self.project.cargo(self.target, arguments);
        self.equip(&mut command);
        command
    }

    fn npm_script(&self, script: &str) -> Command {
        let mut command = Command::new(crate::web::npm_program());
        command
            .args(["run", "--silent", script])
            .current_dir(self.project.web_path());
        self.equip(&mut command);
        command
    }

    fn equip(&self, command: &mut Command) {
        command
            .envs(self.variables.iter().map(|(name, value)| (name, value)))
            .env("TMPDIR", &self.scratch);
    }
}

enum Verdict {
    Passed,
    NotHere(&'static str),
    Failed(anyhow::Error),
}

pub(crate) fn run(project: &Project, steps: &[&'static Step]) -> Result<ExitCode> {
    let start = Instant::now();
    let target = Target::of(project);
    let _turn = target.take_turn(project)?;
    let scratch = empty_scratch(&target)?;
    let mut workbench = Workbench {
        project,
        target: &target,
        variables: Vec::new(),
        scratch,
    };

    let mut ready: Vec<(Need, Result<(), String>)> = Vec::new();
    let mut verdicts = Vec::new();
    for step in steps {
        header(step.name, step.what);
        let start = Instant::now();
        let verdict = match prepare(step, &mut workbench, &mut ready).and_then(|()| (step.run)(&workbench)) {
            Ok(Outcome::Passed) => Verdict::Passed,
            Ok(Outcome::NotHere(reason)) => {
                println!("not run: {reason}");
                Verdict::NotHere(reason)
            }
            Err(error) => {
                eprintln!("error: {error:#}");
                Verdict::Failed(error)
            }
        };
        verdicts.push((step.name, verdict, start.elapsed()));
    }

    fs::remove_dir_all(&workbench.scratch)
        .with_context(|| format!("{} can't be deleted", workbench.scratch.display()))?;
    Ok(summary(&verdicts, start.elapsed()))
}

/// Provides what a step needs. A failed need is not tried again for the next step.
fn prepare(
    step: &Step,
    workbench: &mut Workbench,
    ready: &mut Vec<(Need, Result<(), String>)>,
) -> Result<()> {
    for need in step.needs {
        let known = ready
            .iter()
            .find(|(known, _)| known == need)
            .map(|(_, outcome)| outcome.clone());
        let outcome = known.unwrap_or_else(|| {
            let outcome = provide(*need, workbench).map_err(|error| format!("{error:#}"));
            ready.push((*need, outcome.clone()));
            outcome
        });
        outcome.map_err(|reason| anyhow!("could not run: {reason}"))?;
    }
    Ok(())
}

fn provide(need: Need, workbench: &mut Workbench) -> Result<()> {
    let variables = match need {
        Need::Installed(part) => part.install(workbench.project)?,
        Need::Executables => steps::build_executables(workbench)?,
    };
    workbench.variables.extend(variables);
    Ok(())
}

/// Tests get their own folder for temporary files, which starts empty and is deleted at the end. The next run with the
/// same target folder finds what an interrupted run left.
fn empty_scratch(target: &Target) -> Result<PathBuf> {
    let mut hasher = DefaultHasher::new();
    target.path().hash(&mut hasher);
    // Short: the paths of sockets in it may have at most about 100 bytes.
    let folder = std::env::temp_dir().join(format!("tiller-test-{:08x}", hasher.finish() >> 32));
    let create = |folder: &Path| {
        if folder.exists() {
            fs::remove_dir_all(folder)?;
        }
        fs::create_dir(folder)
    };
    create(&folder).with_context(|| format!("{} can't be made anew", folder.display()))?;
    Ok(folder)
}

fn header(name: &str, what: &str) {
    println!("\n{}", bold(&format!("== {name}: {what}")));
}

fn summary(verdicts: &[(&str, Verdict, Duration)], total: Duration) -> ExitCode {
    println!("\n{}", bold("== summary"));
    for (name, verdict, time) in verdicts {
        let verdict = match verdict {
            Verdict::Passed => "passed".to_owned(),
            Verdict::NotHere(reason) => format!("not run: {reason}"),
            Verdict::Failed(error) => {
                let reason = error.to_string();
                format!("FAILED  {}", reason.lines().next().unwrap_or_default())
            }
        };
        println!("{name:<12} {:>7.1} s  {verdict}", time.as_secs_f64());
    }
    let failed = verdicts
        .iter()
        .filter(|(_, verdict, _)| matches!(verdict, Verdict::Failed(_)))
        .count();
    println!(
        "{:<12} {:>7.1} s  {}",
        "total",
        total.as_secs_f64(),
        match failed {
            0 => "passed".to_owned(),
            1 => "1 step FAILED".to_owned(),
            _ => format!("{failed} steps FAILED"),
        }
    );
    if failed == 0 {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

fn bold(text: &str) -> String {
    if stdout().is_terminal() {
        format!("\x1b[1m{text}\x1b[0m")
    } else {
        text.to_owned()
    }
}
