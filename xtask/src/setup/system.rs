//! The system's package manager, if it can be used without a password.

use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::run;

struct Manager {
    program: &'static str,
    refresh: &'static [&'static str],
    install: &'static [&'static str],
}

/// Packages have the same names everywhere except for [`Manager::name_of`].
const MANAGERS: &[Manager] = &[
    Manager {
        program: "apt-get",
        refresh: &["update", "--quiet"],
        install: &["install", "--yes", "--quiet", "--no-install-recommends"],
    },
    Manager {
        program: "dnf",
        refresh: &[],
        install: &["install", "--assumeyes", "--quiet"],
    },
    Manager {
        program: "pacman",
        refresh: &[],
        install: &["-Sy", "--noconfirm", "--needed"],
    },
    Manager {
        program: "apk",
        refresh: &[],
        install: &["add", "--quiet"],
    },
    Manager {
        program: "zypper",
        refresh: &[],
        install: &["--non-interactive", "install"],
    },
];

impl Manager {
    /// The package's name here, or `None` if another package contains it.
    fn name_of<'a>(&self, package: &'a str) -> Option<&'a str> {
        match (self.program, package) {
            ("apt-get", package) => Some(package),
            (_, "python3-venv") => None,
            ("pacman", "python3") => Some("python"),
            (_, package) => Some(package),
        }
    }
}

/// Installs packages, or prints what to type.
pub(super) fn install(what: &str, packages: &[&str]) -> Result<()> {
    let Some(manager) = MANAGERS
        .iter()
        .find(|manager| run::which(manager.program).is_some())
    else {
        bail!("{what} is missing, and this system has no known package manager. Install it by hand");
    };
    let packages: Vec<&str> = packages
        .iter()
        .filter_map(|package| manager.name_of(package))
        .collect();
    let typed = format!(
        "sudo {} {} {}",
        manager.program,
        manager.install.join(" "),
        packages.join(" ")
    );
    if packages.is_empty() {
        bail!("{what} is missing, although this system's Python should contain it");
    }
    let Some(mut prefix) = privilege() else {
        bail!(
            "{what} is missing, and installing it needs a password. Run this, then try again:\n    {typed}"
        );
    };
    prefix.push(manager.program);

    println!("Installing {what} with {}…", manager.program);
    let run_manager = |arguments: &[&str], packages: &[&str]| {
        run::read(
            Command::new(prefix[0])
                .args(&prefix[1..])
                .args(arguments)
                .args(packages)
                .env("DEBIAN_FRONTEND", "noninteractive"),
        )
    };
    let installed = if manager.refresh.is_empty() {
        run_manager(manager.install, &packages)
    } else {
        run_manager(manager.refresh, &[]).and_then(|_| run_manager(manager.install, &packages))
    };
    installed.with_context(|| format!("{what} is missing and could not be installed with `{typed}`"))?;
    Ok(())
}

/// The prefix of a command that only root may run: nothing for root, sudo if it needs no password.
fn privilege() -> Option<Vec<&'static str>> {
    let user = run::read(Command::new("id").arg("-u")).ok()?;
    if user == "0" {
        return Some(Vec::new());
    }
    let asks_nothing = run::which("sudo").is_some()
        && run::read(Command::new("sudo").args(["--non-interactive", "true"])).is_ok();
    asks_nothing.then(|| vec!["sudo", "--non-interactive"])
}
