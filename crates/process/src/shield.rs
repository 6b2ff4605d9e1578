//! The shield: agents run in namespaces of their own, in which Tiller's files and processes are hidden.
//!
//! A shielded agent has a mount, a PID and an IPC namespace. Hidden folders are empty there, and the agent sees only
//! processes that it has started. When the first process of the namespace ends, the kernel ends all others, whatever
//! they did to their environment, parents and groups.
//!
//! The agent is started through a launcher, which is this executable again (see [`launch`]): it creates the namespaces,
//! or lets bubblewrap create them if the kernel does not allow it, and stays as the agent's parent.

#[cfg(target_os = "linux")]
mod launcher;
#[cfg(target_os = "linux")]
mod mounts;
#[cfg(target_os = "linux")]
mod proxy;

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::{Arc, OnceLock};

use crate::hosts::HostPattern;
use crate::launch::{Launch, Sandbox};

/// The configured mode of the shield.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum ShieldMode {
    /// Agents are shielded if possible.
    #[default]
    On,
    Off,
    /// Agents are only started with a shield.
    Require,
}

/// The actual state of the shield.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum ShieldState {
    /// Namespaces that Tiller creates itself.
    Namespaces,
    /// Namespaces that bubblewrap creates, with its path.
    Bubblewrap(PathBuf),
    /// Switched off by the user.
    Off,
    /// Not possible on this system, for this reason.
    Unavailable(String),
}

impl ShieldState {
    pub fn is_shielded(&self) -> bool {
        matches!(self, Self::Namespaces | Self::Bubblewrap(_))
    }

    /// Why agents are not shielded, and what to do about it, for a person.
    pub fn why_not(&self) -> Option<String> {
        match self {
            Self::Namespaces | Self::Bubblewrap(_) => None,
            Self::Off => Some("The shield is switched off in config.toml.".to_owned()),
            Self::Unavailable(reason) if cfg!(target_os = "linux") => Some(format!(
                "{reason} Install bubblewrap (for example `apt install bubblewrap`), or allow user namespaces \
                 (`sysctl kernel.apparmor_restrict_unprivileged_userns=0` on Ubuntu)."
            )),
            Self::Unavailable(reason) => Some(reason.clone()),
        }
    }
}

/// The shield of agents. Cheap to clone; the system's abilities are probed once.
#[derive(Clone, Debug)]
pub struct Shield(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    mode: ShieldMode,
    launcher: PathBuf,
    args: Vec<OsString>,
    hidden: Vec<PathBuf>,
    emptied: Vec<PathBuf>,
    state: OnceLock<ShieldState>,
}

impl Default for Shield {
    fn default() -> Self {
        Self::none()
    }
}

impl Shield {
    /// Agents run without a shield.
    pub fn none() -> Self {
        Self::new(ShieldMode::Off, PathBuf::new(), Vec::new())
    }

    /// `launcher` is a program that calls [`launch`] with the arguments after `args`.
    pub fn new(mode: ShieldMode, launcher: PathBuf, args: Vec<OsString>) -> Self {
        Self(Arc::new(Inner {
            mode,
            launcher,
            args,
            hidden: Vec::new(),
            emptied: Vec::new(),
            state: OnceLock::new(),
        }))
    }

    /// Also hides these folders: agents see them as empty and can't write to them.
    #[must_use]
    pub fn hiding(self, folders: Vec<PathBuf>) -> Self {
        self.with(|inner| inner.hidden = folders)
    }

    /// Also replaces these folders: each agent sees an empty folder of its own and can write to it.
    #[must_use]
    pub fn emptying(self, folders: Vec<PathBuf>) -> Self {
        self.with(|inner| inner.emptied = folders)
    }

    /// Marks the shield as unavailable for this reason.
    #[must_use]
    pub fn unavailable(self, reason: &str) -> Self {
        if self.0.mode != ShieldMode::Off {
            self.0
                .state
                .get_or_init(|| ShieldState::Unavailable(reason.to_owned()));
        }
        self
    }

    fn with(self, change: impl FnOnce(&mut Inner)) -> Self {
        let Inner {
            mode,
            launcher,
            args,
            hidden,
            emptied,
            state: _,
        } = &*self.0;
        let mut inner = Inner {
            mode: *mode,
            launcher: launcher.clone(),
            args: args.clone(),
            hidden: hidden.clone(),
            emptied: emptied.clone(),
            state: OnceLock::new(),
        };
        change(&mut inner);
        Self(Arc::new(inner))
    }

    pub fn mode(&self) -> ShieldMode {
        self.0.mode
    }

    /// The actual state. The first call starts processes, for a few milliseconds.
    pub fn state(&self) -> &ShieldState {
        self.0.state.get_or_init(|| match self.0.mode {
            ShieldMode::Off => ShieldState::Off,
            ShieldMode::On | ShieldMode::Require => self.probe(),
        })
    }

    /// The process to start instead of `launch`. An error if the shield is not possible but required, by the
    /// configuration or by a sandbox.
    pub fn wrap(&self, launch: &Launch) -> io::Result<Launch> {
        let state = self.state();
        if !state.is_shielded() {
            let wanted = match (self.0.mode, &launch.sandbox) {
                (_, Some(_)) => "a sandbox",
                (ShieldMode::Require, None) => "a shield",
                (ShieldMode::On | ShieldMode::Off, None) => return Ok(launch.clone()),
            };
            let reason = state.why_not().unwrap_or_default();
            let refused = format!("it needs {wanted}, which is not possible on this system. {reason}");
            return Err(io::Error::other(refused));
        }
        // The launcher would notice too late to report it well.
        can_execute(&launch.program, &launch.env)?;
        let mut args = self.0.args.clone();
        args.extend(self.plan(state, launch.sandbox.as_ref()).to_args());
        args.push("--".into());
        // A search for the agent by its command line must not find the launcher.
        let word = |text: &OsStr| [OsStr::new(":"), text].into_iter().collect::<OsString>();
        args.push(word(launch.program.as_os_str()));
        args.extend(launch.args.iter().map(|argument| word(argument)));
        Ok(Launch {
            program: self.0.launcher.clone(),
            args,
            sandbox: None,
            ..launch.clone()
        })
    }

    fn plan(&self, state: &ShieldState, sandbox: Option<&Sandbox>) -> Plan {
        let existing = |folders: &[PathBuf]| -> Vec<PathBuf> {
            let real = folders.iter().filter_map(|folder| folder.canonicalize().ok());
            real.collect()
        };
        Plan {
            bubblewrap: match state {
                ShieldState::Bubblewrap(path) => Some(path.clone()),
                ShieldState::Namespaces | ShieldState::Off | ShieldState::Unavailable(_) => None,
            },
            hidden: existing(&self.0.hidden),
            emptied: existing(&self.0.emptied),
            sandbox: sandbox.cloned(),
        }
    }

    #[cfg(target_os = "linux")]
    fn probe(&self) -> ShieldState {
        let try_out = |state: ShieldState| {
            let mut command = std::process::Command::new(&self.0.launcher);
            command
                .args(&self.0.args)
                .args(self.plan(&state, None).to_args())
                .arg(PROBE)
                .stdin(std::process::Stdio::null());
            let output = command.output().map_err(|error| error.to_string())?;
            if output.status.success() {
                return Ok(state);
            }
            Err(String::from_utf8_lossy(&output.stderr).trim().to_owned())
        };
        let refused = match try_out(ShieldState::Namespaces) {
            Ok(state) => return state,
            Err(reason) => reason,
        };
        let Some(bubblewrap) = find_program(OsStr::new("bwrap"), std::env::var_os("PATH").as_deref()) else {
            return ShieldState::Unavailable(format!(
                "The system does not allow Tiller to create namespaces ({refused}), and bubblewrap is not installed."
            ));
        };
        try_out(ShieldState::Bubblewrap(bubblewrap)).unwrap_or_else(|reason| {
            ShieldState::Unavailable(format!(
                "The system allows neither Tiller ({refused}) nor bubblewrap ({reason}) to create namespaces."
            ))
        })
    }

    #[cfg(not(target_os = "linux"))]
    fn probe(&self) -> ShieldState {
        ShieldState::Unavailable("The shield needs Linux.".to_owned())
    }
}

#[cfg(all(fuzzing, target_os = "linux"))]
pub use proxy::fuzz_request;

const PROBE: &str = "--probe";

/// What the launcher has to create, in the form of arguments. Nothing in it is secret.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
struct Plan {
    bubblewrap: Option<PathBuf>,
    hidden: Vec<PathBuf>,
    emptied: Vec<PathBuf>,
    sandbox: Option<Sandbox>,
}

impl Plan {
    fn to_args(&self) -> Vec<OsString> {
        let mut args = Vec::new();
        let mut add = |flag: &str, path: &Path| {
            let mut argument = OsString::from(format!("--{flag}="));
            argument.push(path);
            args.push(argument);
        };
        for folder in &self.hidden {
            add("hide", folder);
        }
        for folder in &self.emptied {
            add("empty", folder);
        }
        if let Some(path) = &self.bubblewrap {
            add("bubblewrap", path);
        }
        if let Some(sandbox) = &self.sandbox {
            for folder in &sandbox.writable {
                add("write", folder);
            }
            for path in &sandbox.protected {
                add("protect", path);
            }
            args.push("--sandbox".into());
            args.extend(network_args(sandbox.hosts.as_deref()));
        }
        args
    }

    /// Parses one argument; false if it is not part of the plan.
    fn take(&mut self, argument: &OsStr) -> bool {
        let bytes = argument.as_bytes();
        let value = |flag: &str| {
            let rest = bytes.strip_prefix(format!("--{flag}=").as_bytes())?;
            Some(PathBuf::from(OsString::from_vec(rest.to_vec())))
        };
        if let Some(path) = value("hide") {
            self.hidden.push(path);
        } else if let Some(path) = value("empty") {
            self.emptied.push(path);
        } else if let Some(path) = value("bubblewrap") {
            self.bubblewrap = Some(path);
        } else if let Some(path) = value("write") {
            self.sandbox.get_or_insert_default().writable.push(path);
        } else if let Some(path) = value("protect") {
            self.sandbox.get_or_insert_default().protected.push(path);
        } else if let Some(host) = value("host") {
            let Some(Ok(host)) = host.to_str().map(str::parse) else {
                return false;
            };
            self.hosts_mut().push(host);
        } else if argument == CLOSED {
            self.hosts_mut();
        } else if argument == "--sandbox" {
            self.sandbox.get_or_insert_default();
        } else {
            return false;
        }
        true
    }

    fn hosts_mut(&mut self) -> &mut Vec<HostPattern> {
        self.sandbox.get_or_insert_default().hosts.get_or_insert_default()
    }
}

/// The sandbox has no network of its own.
const CLOSED: &str = "--closed";

fn network_args(hosts: Option<&[HostPattern]>) -> Vec<OsString> {
    let Some(hosts) = hosts else { return Vec::new() };
    let hosts = hosts.iter().map(|host| format!("--host={host}").into());
    std::iter::once(CLOSED.into()).chain(hosts).collect()
}

/// The launcher: shields a program and ends with it. Call it first in a process of its own, with the arguments after
/// its command.
#[cfg(target_os = "linux")]
pub fn launch(arguments: impl Iterator<Item = OsString>) -> ExitCode {
    launcher::launch(arguments)
}

#[cfg(not(target_os = "linux"))]
pub fn launch(_arguments: impl Iterator<Item = OsString>) -> ExitCode {
    ExitCode::FAILURE
}

/// Whether this is the command line of a launcher, which contains that of its agent.
pub fn is_launcher(arguments: &[String]) -> bool {
    let command = arguments.iter().position(|word| word == "shield");
    let rest = command.map_or(&[][..], |at| &arguments[at..]);
    rest.windows(2)
        .any(|pair| pair[0] == "--" && pair[1].starts_with(':'))
}

/// An error if the program is not there or can't be executed.
fn can_execute(program: &Path, env: &std::collections::BTreeMap<OsString, OsString>) -> io::Result<()> {
    if program.as_os_str().as_bytes().contains(&b'/') {
        // A path below `/proc/self` names another program in the process that will start it, so it is not checked here.
        if program.starts_with("/proc/self") {
            return Ok(());
        }
        return Ok(rustix::fs::access(program, rustix::fs::Access::EXEC_OK)?);
    }
    let path = env.get(OsStr::new("PATH")).map(OsString::as_os_str);
    match find_program(program.as_os_str(), path) {
        Some(_) => Ok(()),
        None => Err(io::ErrorKind::NotFound.into()),
    }
}

fn find_program(name: &OsStr, path: Option<&OsStr>) -> Option<PathBuf> {
    let is_program = |path: &PathBuf| rustix::fs::access(path, rustix::fs::Access::EXEC_OK).is_ok();
    std::env::split_paths(path?)
        .map(|folder| folder.join(name))
        .find(is_program)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plan_goes_over_a_command_line() {
        let plan = Plan {
            bubblewrap: Some("/usr/bin/bwrap".into()),
            hidden: vec![
                "/some where/data".into(),
                OsString::from_vec(vec![b'/', 0xff]).into(),
            ],
            emptied: vec!["/run/leases".into()],
            sandbox: Some(Sandbox {
                writable: vec!["/project".into()],
                protected: vec!["/project/settings.json".into()],
                hosts: Some(vec!["*.example.com:8443".parse().unwrap()]),
            }),
        };
        let mut taken = Plan::default();
        for argument in plan.to_args() {
            assert!(taken.take(&argument), "{argument:?}");
        }
        assert_eq!(taken, plan);
        assert!(!taken.take(OsStr::new("--")));
    }

    #[test]
    fn a_launcher_is_distinguished_from_its_agent() {
        let words = |line: &str| line.split(' ').map(str::to_owned).collect::<Vec<_>>();
        assert!(is_launcher(&words(
            "/proc/self/exe shield --hide=/x -- :/bin/claude :--resume=1"
        )));
        assert!(!is_launcher(&words("/bin/claude --resume=1")));
        assert!(!is_launcher(&words("/bin/claude -p -- :shield")));
    }

    #[test]
    fn without_a_shield_a_launch_is_unchanged_unless_one_is_required() {
        let launch = Launch {
            program: "/bin/sh".into(),
            args: Vec::new(),
            env: std::collections::BTreeMap::new(),
            cwd: None,
            exact_cwd: false,
            open_files: None,
            sandbox: None,
        };
        let nowhere = || PathBuf::from("/nowhere/launcher");
        assert_eq!(Shield::none().wrap(&launch).unwrap(), launch);
        let broken = Shield::new(ShieldMode::On, nowhere(), Vec::new());
        assert!(!broken.state().is_shielded());
        assert_eq!(broken.wrap(&launch).unwrap(), launch);
        let required = Shield::new(ShieldMode::Require, nowhere(), Vec::new());
        assert!(required.wrap(&launch).is_err());
        let boxed = Launch {
            sandbox: Some(Sandbox::default()),
            ..launch
        };
        for shield in [broken, Shield::none()] {
            assert!(shield.wrap(&boxed).is_err(), "never silently without");
        }
    }
}
