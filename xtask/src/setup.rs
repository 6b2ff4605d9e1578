//! Installs what the tests need, into the user's cache folder if possible. Quick if it is already installed.

mod bubblewrap;
mod chromium;
mod claude;
mod npm;
mod opencode;
mod python;
mod system;

use std::env;
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Instant;

use anyhow::{Context, Result, bail};

use crate::project::{Project, lock};

/// Something that tests need and the repository does not contain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    WebPackages,
    Claude,
    Opencode,
    Python,
    Chromium,
    Bubblewrap,
}

impl Part {
    const ALL: [Self; 6] = [
        Self::WebPackages,
        Self::Claude,
        Self::Opencode,
        Self::Python,
        Self::Chromium,
        Self::Bubblewrap,
    ];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::WebPackages => "npm packages",
            Self::Claude => "Claude Code",
            Self::Opencode => "opencode",
            Self::Python => "Python with the Agent SDK",
            Self::Chromium => "Chromium",
            Self::Bubblewrap => "bubblewrap",
        }
    }

    /// Installs the part if it is missing. Returns the environment variables with which tests find it.
    pub(crate) fn install(self, project: &Project) -> Result<Vec<(&'static str, OsString)>> {
        let _lock = lock(
            &project.cache.join("setup.lock"),
            "Waiting for another cargo xtask that installs something…",
        )?;
        match self {
            Self::WebPackages => project.web().install_packages().map(|()| Vec::new()),
            Self::Claude => claude::VERSIONS
                .iter()
                .map(|(version, variable)| {
                    let executable = located(variable, || claude::install(project, version))?;
                    Ok((*variable, executable.into()))
                })
                .collect(),
            Self::Opencode => {
                let executable = located("TILLER_TEST_OPENCODE", || opencode::install(project))?;
                Ok(vec![("TILLER_TEST_OPENCODE", executable.into())])
            }
            Self::Python => {
                let python = located("TILLER_TEST_PYTHON", || python::install(project))?;
                Ok(vec![("TILLER_TEST_PYTHON", python.into())])
            }
            Self::Chromium => {
                let browser = located("TILLER_TEST_CHROMIUM", chromium::install)?;
                Ok(vec![("TILLER_TEST_CHROMIUM", browser.into())])
            }
            Self::Bubblewrap => bubblewrap::install().map(|()| Vec::new()),
        }
        .with_context(|| format!("{} could not be installed", self.name()))
    }
}

/// The path in an environment variable, or else the installed one.
fn located(variable: &str, install: impl FnOnce() -> Result<PathBuf>) -> Result<PathBuf> {
    match env::var_os(variable)
        .filter(|value| !value.is_empty())
        .map(PathBuf::from)
    {
        Some(chosen) if chosen.is_file() => Ok(chosen),
        Some(chosen) => bail!("{variable} names {}, which does not exist", chosen.display()),
        None => install(),
    }
}

pub(crate) fn everything(project: &Project) -> Result<()> {
    let mut missing = Vec::new();
    for part in Part::ALL {
        let start = Instant::now();
        match part.install(project) {
            Ok(_) => println!("{}: ready ({:.1} s)", part.name(), start.elapsed().as_secs_f64()),
            Err(error) => {
                eprintln!("error: {error:#}");
                missing.push(part.name());
            }
        }
    }
    if !missing.is_empty() {
        bail!("not everything could be installed: {}", missing.join(", "));
    }
    Ok(())
}
