//! Finding the Claude Code executable, and which version it is.
//!
//! People install it with npm, a version manager, bun, Homebrew or its own installer, and a program that was started
//! by a service manager or a desktop has none of these on its `PATH`.

use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::{Duration, SystemTime};

use crate::version::{Version, VersionError};

/// Long enough for a cold start of a 350 MB executable from a slow disk.
const VERSION_TIMEOUT: Duration = Duration::from_secs(30);

/// The CLI answers within a second; longer means that something is wrong with it.
const LOGIN_TIMEOUT: Duration = Duration::from_secs(30);

/// A Claude Code executable, and how to run it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Executable {
    /// The file that was found: a native executable, a script, or a `.js` file.
    pub path: PathBuf,
    /// For a `.js` file: the JavaScript runtime to run it with.
    pub runtime: Option<PathBuf>,
}

impl Executable {
    /// The program to start.
    pub fn program(&self) -> &Path {
        self.runtime.as_deref().unwrap_or(&self.path)
    }

    /// The arguments that come before all others.
    pub fn leading_args(&self) -> Vec<OsString> {
        self.runtime
            .iter()
            .map(|_| self.path.clone().into_os_string())
            .collect()
    }

    /// A command that asks the executable something beside a conversation: without anything that belongs to the program
    /// that asks, of which the executable needs to know nothing.
    pub fn query(&self) -> tokio::process::Command {
        let mut command = tokio::process::Command::new(self.program());
        command
            .args(self.leading_args())
            .env_remove("CLAUDECODE")
            .env("PATH", Finder::from_env().enriched_path())
            .stdin(Stdio::null())
            .kill_on_drop(true);
        for (name, _) in std::env::vars_os() {
            if name.to_string_lossy().starts_with("TILLER_") {
                command.env_remove(name);
            }
        }
        command
    }

    /// Asks the executable for its version. The answer is remembered until the file changes.
    pub async fn version(&self) -> Result<Version, VersionError> {
        let stamp = Stamp::of(&self.path).map_err(|source| VersionError::Unreadable { source })?;
        if let Some(version) = versions().get(&stamp) {
            return Ok(version.clone());
        }
        let mut command = self.query();
        let output = command.arg("--version").output();
        let output = tokio::time::timeout(VERSION_TIMEOUT, output)
            .await
            .map_err(|_| VersionError::TimedOut)?
            .map_err(|source| VersionError::Unreadable { source })?;
        let text = String::from_utf8_lossy(&output.stdout);
        let version: Version = text.parse().map_err(|_| VersionError::Unexpected {
            output: format!("{text}{}", String::from_utf8_lossy(&output.stderr))
                .trim()
                .to_owned(),
        })?;
        versions().insert(stamp, version.clone());
        Ok(version)
    }

    /// Asks the executable whether the user is logged in. `claude_home` is where it keeps its settings, if not in its
    /// usual place.
    pub async fn login(&self, claude_home: Option<&Path>) -> Result<Login, LoginUnknown> {
        let mut command = self.query();
        command.args(["auth", "status"]);
        if let Some(folder) = claude_home {
            command.env("CLAUDE_CONFIG_DIR", folder);
        }
        let output = tokio::time::timeout(LOGIN_TIMEOUT, command.output())
            .await
            .map_err(|_| LoginUnknown::TimedOut)?
            .map_err(|source| LoginUnknown::Unreadable { source })?;
        serde_json::from_slice(&output.stdout).map_err(|_| LoginUnknown::NotTold)
    }
}

/// Whether the user is logged in, as the CLI says.
#[derive(Debug, Clone, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Login {
    /// Whether the user is logged in.
    pub logged_in: bool,
    /// By which means.
    #[serde(default)]
    pub auth_method: Option<String>,
}

/// Why it is not known whether the user is logged in.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LoginUnknown {
    /// The executable could not be run.
    #[error("{source}")]
    Unreadable {
        /// Why not.
        source: std::io::Error,
    },
    /// No answer came in time.
    #[error("Claude Code does not answer")]
    TimedOut,
    /// The answer was not understood.
    #[error("this version does not say")]
    NotTold,
}

/// Identifies one state of a file, so that an update of the CLI is noticed.
#[derive(PartialEq, Eq, Hash)]
struct Stamp {
    path: PathBuf,
    modified: Option<SystemTime>,
    length: u64,
}

impl Stamp {
    fn of(path: &Path) -> std::io::Result<Self> {
        let path = path.canonicalize()?;
        let metadata = path.metadata()?;
        Ok(Self {
            path,
            modified: metadata.modified().ok(),
            length: metadata.len(),
        })
    }
}

fn versions() -> std::sync::MutexGuard<'static, HashMap<Stamp, Version>> {
    static VERSIONS: OnceLock<Mutex<HashMap<Stamp, Version>>> = OnceLock::new();
    VERSIONS
        .get_or_init(Mutex::default)
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
}

/// Claude Code was not found.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub struct NotFound {
    /// The executable that the caller asked for, if any.
    pub wanted: Option<PathBuf>,
    /// Where it was looked for.
    pub looked_at: Vec<PathBuf>,
    /// It was found, but is a `.js` file, and no JavaScript runtime was.
    pub runtime_missing: bool,
}

impl fmt::Display for NotFound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.wanted {
            Some(path) if self.runtime_missing => write!(
                f,
                "{} needs Node.js, which was not found. Install Node.js 18 or newer, or the native Claude Code.",
                path.display()
            ),
            Some(path) => write!(
                f,
                "There is no Claude Code executable at {}. Correct the path, or leave it out to search the usual places.",
                path.display()
            ),
            None => write!(
                f,
                "Claude Code was not found (looked in {} places). Install it with `npm install -g @anthropic-ai/claude-code`, \
                 or name the executable.",
                self.looked_at.len()
            ),
        }
    }
}

/// Where to look for executables.
#[derive(Debug, Clone)]
pub struct Finder {
    home: Option<PathBuf>,
    path: OsString,
}

impl Finder {
    /// Looks where this process's environment says.
    pub fn from_env() -> Self {
        Self {
            home: std::env::home_dir(),
            path: std::env::var_os("PATH").unwrap_or_default(),
        }
    }

    /// Looks in a given home folder and search path, and in the places of the system.
    pub fn new(home: impl Into<PathBuf>, path: impl Into<OsString>) -> Self {
        Self {
            home: Some(home.into()),
            path: path.into(),
        }
    }

    /// Finds Claude Code: on the `PATH`, then in all places where installers put it.
    pub fn find(&self) -> Result<Executable, NotFound> {
        let mut looked_at = Vec::new();
        for candidate in self.candidates() {
            if is_executable(&candidate) {
                return self.resolve(&candidate);
            }
            looked_at.push(candidate);
        }
        Err(NotFound {
            wanted: None,
            looked_at,
            runtime_missing: false,
        })
    }

    /// Uses a given executable. A `.js` file is run with Node.js (or bun).
    pub fn resolve(&self, path: &Path) -> Result<Executable, NotFound> {
        let missing = |runtime_missing| NotFound {
            wanted: Some(path.to_owned()),
            looked_at: vec![path.to_owned()],
            runtime_missing,
        };
        // A bare name is looked up as a shell would.
        let found = if path.components().count() == 1 && !path.is_file() {
            self.search(path.as_os_str()).ok_or_else(|| missing(false))?
        } else {
            path.to_owned()
        };
        if !found.is_file() {
            return Err(missing(false));
        }
        let script = found
            .extension()
            .is_some_and(|extension| extension == "js" || extension == "cjs" || extension == "mjs");
        if !script {
            return if is_executable(&found) {
                Ok(Executable {
                    path: found,
                    runtime: None,
                })
            } else {
                Err(missing(false))
            };
        }
        let runtime = self
            .search(OsStr::new("node"))
            .or_else(|| self.search(OsStr::new("bun")));
        match runtime {
            Some(runtime) => Ok(Executable {
                path: found,
                runtime: Some(runtime),
            }),
            None => Err(missing(true)),
        }
    }

    /// The search path, with the folders of version managers and installers that it lacks in front.
    pub fn enriched_path(&self) -> OsString {
        let current: Vec<PathBuf> = std::env::split_paths(&self.path).collect();
        let mut folders: Vec<PathBuf> = Vec::new();
        for folder in self.tool_folders() {
            if folder.is_dir() && !current.contains(&folder) && !folders.contains(&folder) {
                folders.push(folder);
            }
        }
        for folder in current {
            if !folders.contains(&folder) {
                folders.push(folder);
            }
        }
        // Fails only for a folder with a `:` in its name, which can't be on a search path anyway.
        std::env::join_paths(folders).unwrap_or_else(|_| self.path.clone())
    }

    fn search(&self, name: &OsStr) -> Option<PathBuf> {
        std::env::split_paths(&self.enriched_path())
            .map(|folder| folder.join(name))
            .find(|path| is_executable(path))
    }

    fn candidates(&self) -> Vec<PathBuf> {
        let mut places: Vec<PathBuf> = std::env::split_paths(&self.path)
            .filter(|folder| folder.is_absolute())
            .map(|folder| folder.join("claude"))
            .collect();
        if let Some(home) = &self.home {
            places.push(home.join(".claude/local/claude"));
            places.push(home.join(".claude/local/node_modules/.bin/claude"));
            places.push(home.join(".claude/bin/claude"));
            places.push(home.join(".local/bin/claude"));
            places.push(home.join("node_modules/.bin/claude"));
        }
        places.extend(
            self.tool_folders()
                .into_iter()
                .map(|folder| folder.join("claude")),
        );
        let mut unique = Vec::with_capacity(places.len());
        for place in places {
            if !unique.contains(&place) {
                unique.push(place);
            }
        }
        unique
    }

    /// The folders in which version managers and package managers put executables.
    fn tool_folders(&self) -> Vec<PathBuf> {
        let mut folders = Vec::new();
        if let Some(home) = &self.home {
            folders.extend(versions_in(&home.join(".nvm/versions/node"), "bin"));
            folders.push(home.join(".fnm/aliases/default/bin"));
            folders.push(home.join(".local/share/fnm/aliases/default/bin"));
            folders.push(home.join("Library/Application Support/fnm/aliases/default/bin"));
            folders.extend(versions_in(
                &home.join(".local/share/fnm/node-versions"),
                "installation/bin",
            ));
            folders.push(home.join(".volta/bin"));
            folders.push(home.join(".local/bin"));
            folders.push(home.join(".bun/bin"));
            folders.push(home.join(".npm-global/bin"));
            folders.push(home.join(".npm-packages/bin"));
            folders.push(home.join(".local/share/pnpm"));
            folders.push(home.join("Library/pnpm"));
            folders.push(home.join(".yarn/bin"));
            folders.push(home.join(".config/yarn/global/node_modules/.bin"));
            folders.push(home.join(".asdf/shims"));
            folders.push(home.join(".local/share/mise/shims"));
            folders.push(home.join(".n/bin"));
        }
        folders.push("/usr/local/bin".into());
        folders.push("/opt/homebrew/bin".into());
        folders.push("/home/linuxbrew/.linuxbrew/bin".into());
        folders.push("/snap/bin".into());
        folders
    }
}

/// `folder/*/inside`, the newest version first.
fn versions_in(folder: &Path, inside: &str) -> Vec<PathBuf> {
    let Ok(entries) = folder.read_dir() else {
        return Vec::new();
    };
    let mut versions: Vec<(Option<Version>, PathBuf)> = entries
        .filter_map(Result::ok)
        .map(|entry| {
            (
                entry.file_name().to_string_lossy().parse().ok(),
                entry.path().join(inside),
            )
        })
        .collect();
    versions.sort();
    versions.into_iter().rev().map(|(_, path)| path).collect()
}

fn is_executable(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    path.metadata()
        .is_ok_and(|metadata| metadata.is_file() && metadata.permissions().mode() & 0o111 != 0)
}
