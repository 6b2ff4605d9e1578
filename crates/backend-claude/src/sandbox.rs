//! What Claude Code needs in a sandbox: where it writes, whom it speaks to, and what it must not change there.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use tiller_core::Options;
use tiller_core::backend::{SandboxLists, SandboxView};
use tiller_process::{HostPattern, Sandbox};

/// Where the CLI speaks to its model, and signs in.
const HOSTS: [&str; 4] = [
    "api.anthropic.com",
    "platform.claude.com",
    "console.anthropic.com",
    "claude.ai",
];

/// Variables that name another model server.
const BASE_URLS: [&str; 4] = [
    "ANTHROPIC_BASE_URL",
    "ANTHROPIC_BEDROCK_BASE_URL",
    "ANTHROPIC_VERTEX_BASE_URL",
    "ANTHROPIC_FOUNDRY_BASE_URL",
];

/// What the CLI of every project reads and runs, in its own folder: a sandboxed agent that could write there would have its
/// commands run outside.
const PROTECTED_FILES: [&str; 4] = [
    "settings.json",
    "settings.local.json",
    ".claude.json",
    "CLAUDE.md",
];
const PROTECTED_FOLDERS: [&str; 7] = [
    "agents",
    "commands",
    "hooks",
    "output-styles",
    "plugins",
    "rules",
    "skills",
];

/// What every sandbox of this backend has.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sandboxing {
    /// Where the CLI keeps its settings and transcripts, if not in its usual place.
    pub(crate) claude_home: Option<PathBuf>,
    /// What the server's configuration lists.
    pub(crate) configured: SandboxLists,
}

impl Sandboxing {
    fn home(&self) -> Option<PathBuf> {
        let usual = || Some(std::env::home_dir()?.join(".claude"));
        self.claude_home.clone().or_else(usual)
    }

    fn always(&self) -> SandboxLists {
        let options = match &self.claude_home {
            Some(home) => tiller_agent::Options::new().claude_home(home),
            None => tiller_agent::Options::new(),
        };
        let needed = SandboxLists {
            folders: self.home().into_iter().collect(),
            hosts: model_hosts(&tiller_agent::cli::environment_of(&options)),
        };
        needed.and(&self.configured)
    }

    /// The sandbox of a session with these options.
    pub(crate) fn view(&self, options: &Options) -> Option<SandboxView> {
        SandboxView::of(options, || self.always())
    }

    /// The same for its agent, which is about to start in `cwd`.
    pub(crate) fn prepare(&self, options: &Options, cwd: &Path) -> Option<Sandbox> {
        let SandboxView { folders, hosts } = self.view(options)?;
        let home = self.home();
        if let Some(home) = &home
            && let Err(error) = provide(home)
        {
            // Inside, the CLI could not make it. If it is not there, the launch fails with the reason.
            tracing::warn!(%error, "can't prepare the folder of Claude Code for a sandbox");
        }
        let protected = |home: &PathBuf| {
            let names = PROTECTED_FILES.iter().chain(&PROTECTED_FOLDERS);
            names.map(|name| home.join(name)).collect::<Vec<_>>()
        };
        let mut writable = vec![cwd.to_owned()];
        writable.extend(folders);
        Some(Sandbox {
            writable,
            protected: home.as_ref().map(protected).unwrap_or_default(),
            hosts,
        })
    }
}

/// Makes what a sandbox protects: only what is there can be kept from being written.
fn provide(home: &Path) -> std::io::Result<()> {
    for folder in PROTECTED_FOLDERS {
        std::fs::create_dir_all(home.join(folder))?;
    }
    match std::fs::File::create_new(home.join("settings.json")) {
        Ok(mut file) => std::io::Write::write_all(&mut file, b"{}\n"),
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => Ok(()),
        Err(error) => Err(error),
    }
}

/// The hosts that a CLI with this environment speaks to.
fn model_hosts(env: &BTreeMap<OsString, OsString>) -> Vec<HostPattern> {
    let value = |name: &str| {
        env.get(OsStr::new(name))?
            .to_str()
            .filter(|value| !value.is_empty())
    };
    let mut hosts: Vec<String> = HOSTS.map(str::to_owned).into();
    let region = |names: [&str; 2]| names.into_iter().find_map(value);
    if value("CLAUDE_CODE_USE_BEDROCK").is_some() {
        let region = region(["AWS_REGION", "AWS_DEFAULT_REGION"]).unwrap_or("us-east-1");
        hosts.push(format!("bedrock-runtime.{region}.amazonaws.com"));
        hosts.push(format!("bedrock.{region}.amazonaws.com"));
        hosts.push(format!("sts.{region}.amazonaws.com"));
    }
    if value("CLAUDE_CODE_USE_VERTEX").is_some() {
        let region = value("CLOUD_ML_REGION").unwrap_or("us-east5");
        hosts.push(format!("{region}-aiplatform.googleapis.com"));
        hosts.push("aiplatform.googleapis.com".to_owned());
        hosts.push("oauth2.googleapis.com".to_owned());
    }
    hosts.extend(BASE_URLS.into_iter().filter_map(value).filter_map(host_of));
    let mut patterns: Vec<HostPattern> = Vec::new();
    for pattern in hosts.iter().filter_map(|host| host.parse().ok()) {
        if !patterns.contains(&pattern) {
            patterns.push(pattern);
        }
    }
    patterns
}

/// The host of an address, with the port where it is not the usual one.
pub(crate) fn host_of(url: &str) -> Option<String> {
    let (_, rest) = url.split_once("://")?;
    let authority = rest.split(['/', '?', '#']).next()?;
    let host = authority.rsplit('@').next()?;
    (!host.is_empty()).then(|| host.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hosts(env: &[(&str, &str)]) -> Vec<String> {
        let env = env.iter().map(|(name, value)| ((*name).into(), (*value).into()));
        model_hosts(&env.collect())
            .iter()
            .map(ToString::to_string)
            .collect()
    }

    #[test]
    fn the_hosts_of_the_model_are_known_from_the_environment() {
        assert_eq!(hosts(&[]), HOSTS);
        let own = hosts(&[("ANTHROPIC_BASE_URL", "https://user:word@proxy.corp:8443/v1?x")]);
        assert_eq!(own.last().map(String::as_str), Some("proxy.corp:8443"));
        let own = hosts(&[("ANTHROPIC_BASE_URL", "http://127.0.0.1:4000")]);
        assert_eq!(own.last().map(String::as_str), Some("127.0.0.1:4000"));
        let bedrock = hosts(&[("CLAUDE_CODE_USE_BEDROCK", "1"), ("AWS_REGION", "eu-west-1")]);
        assert!(
            bedrock.contains(&"bedrock-runtime.eu-west-1.amazonaws.com".to_owned()),
            "{bedrock:?}"
        );
        let vertex = hosts(&[
            ("CLAUDE_CODE_USE_VERTEX", "1"),
            ("CLOUD_ML_REGION", "europe-west1"),
        ]);
        assert!(
            vertex.contains(&"europe-west1-aiplatform.googleapis.com".to_owned()),
            "{vertex:?}"
        );
        // What names no host opens nothing.
        assert_eq!(
            hosts(&[("ANTHROPIC_BASE_URL", "nonsense"), ("AWS_REGION", "x")]),
            HOSTS
        );
    }
}
