//! `config.toml` in the data folder. Everything in it is optional, and so is the file.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context;
use serde::Deserialize;
use tiller_core::backend::{SANDBOX_FOLDERS, SandboxLevel, SandboxLists, check_sandbox_option};
use tiller_core::{HibernationPolicy, Retention};
use tiller_server::TrustedProxies;

use crate::data_dir::DataDir;
use crate::log;

/// Long enough for an upgrade or a restart of the machine's services.
const DEFAULT_GRACE: Duration = Duration::from_mins(10);

/// Agent names with a special meaning.
const RESERVED: &[&str] = &["auto", "claude", "demo"];

#[derive(Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Config {
    /// Host names, with or without a port, under which the server may be reached beside its address.
    pub(crate) allowed_hosts: Vec<String>,
    /// Proxies whose forwarded client addresses are trusted: addresses (10.0.0.1) and networks (10.0.0.0/8).
    trusted_proxies: Vec<String>,
    /// The language of messages to clients that don't send `Accept-Language`: `zh-CN` (the default) or `en`.
    language: Language,
    /// How many tasks one address may start in a minute, at each endpoint of the task API.
    pub(crate) task_starts_per_minute: u32,
    /// Who answers when an agent asks for permission, in sessions whose client does not choose: `ask` (the default)
    /// asks the user, `auto` allows everything except questions, plans and forms.
    approval: Approval,
    /// Where the titles of sessions come from: `model` (the default), or `prompt`, which costs nothing.
    pub(crate) titles: Titles,
    /// Sessions that were not used for this many days are deleted from Tiller's database; 0 keeps them forever.
    pub(crate) retention_days: u32,
    /// The streamed fragments of a message are removed after this many hours; the message stays.
    pub(crate) delta_retention_hours: u32,
    /// What happens to agents when the server stops: `end` (the default), or `keep`, which leaves them to the next
    /// server.
    pub(crate) on_stop: OnStop,
    /// How many seconds an agent without a server may be idle before it ends.
    pub(crate) agent_grace_s: Option<u64>,
    /// How many seconds an agent that waits for a decision may go without a server.
    decision_grace_s: u64,
    /// How many seconds an agent waits for the answer to a hook call before it continues without one.
    pub(crate) hook_timeout_s: u64,
    /// After how many idle seconds an agent hibernates; 0 is never. The next prompt starts it again.
    pub(crate) hibernate_after_s: u64,
    /// How much memory all agents together may use before idle ones hibernate; 0 is unlimited.
    pub(crate) agent_memory_mb: Option<u64>,
    /// Agents that use the Agent Client Protocol, each as `name=command with arguments`, such as `opencode=opencode
    /// acp`.
    acp_agents: Vec<String>,
    /// Whether agents are shielded: `on` (the default) if the system allows it, `off`, or `require`, which starts no
    /// agent without a shield.
    shield: ShieldWish,
    /// Folders that every sandboxed agent can write to, beside its working directory and its own files. `~/` is the home
    /// folder.
    sandbox_folders: Vec<String>,
    /// Hosts that every sandboxed agent can reach, beside those of its model: `packages.example.org`, `*.example.com`,
    /// `localhost:5432`.
    sandbox_hosts: Vec<String>,
    /// The sandbox of sessions that are started with an API key and don't choose one: `off` (the default), `files`, or `on`.
    key_sandbox: String,
    /// How the log is written, on standard error: `text` (the default), or `json`, one object a line.
    log_format: log::Format,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            allowed_hosts: Vec::new(),
            trusted_proxies: Vec::new(),
            language: Language::default(),
            task_starts_per_minute: 10,
            approval: Approval::default(),
            titles: Titles::default(),
            retention_days: 30,
            delta_retention_hours: 24,
            on_stop: OnStop::default(),
            agent_grace_s: None,
            decision_grace_s: 24 * 60 * 60,
            hook_timeout_s: 60,
            hibernate_after_s: 1800,
            agent_memory_mb: None,
            acp_agents: Vec::new(),
            shield: ShieldWish::default(),
            sandbox_folders: Vec::new(),
            sandbox_hosts: Vec::new(),
            key_sandbox: SandboxLevel::Off.name().to_owned(),
            log_format: log::Format::default(),
        }
    }
}

#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq)]
enum Language {
    #[default]
    #[serde(rename = "zh-CN", alias = "zh")]
    Chinese,
    #[serde(rename = "en")]
    English,
}

#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq)]
#[serde(rename_all = "lowercase")]
pub(crate) enum OnStop {
    #[default]
    End,
    Keep,
}

#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Titles {
    #[default]
    Model,
    Prompt,
}

#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq)]
#[serde(rename_all = "lowercase")]
enum Approval {
    #[default]
    Ask,
    Auto,
}

#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq)]
#[serde(rename_all = "lowercase")]
enum ShieldWish {
    #[default]
    On,
    Off,
    Require,
}

impl Config {
    pub(crate) fn shield(&self) -> tiller_process::ShieldMode {
        match self.shield {
            ShieldWish::On => tiller_process::ShieldMode::On,
            ShieldWish::Off => tiller_process::ShieldMode::Off,
            ShieldWish::Require => tiller_process::ShieldMode::Require,
        }
    }

    /// What every sandbox has.
    pub(crate) fn sandbox(&self) -> anyhow::Result<SandboxLists> {
        let folder = |text: &String| {
            let path = match text.strip_prefix("~/") {
                Some(rest) => std::env::home_dir().unwrap_or_default().join(rest),
                None => PathBuf::from(text),
            };
            let value = serde_json::json!([path]);
            let outcome = check_sandbox_option(SANDBOX_FOLDERS, &value).unwrap_or(Ok(()));
            outcome.with_context(|| format!("sandbox_folders in config.toml: {text:?}"))?;
            Ok(path)
        };
        let host = |text: &String| {
            let host = text.parse();
            host.with_context(|| format!("sandbox_hosts in config.toml: {text:?}"))
        };
        Ok(SandboxLists {
            folders: self
                .sandbox_folders
                .iter()
                .map(folder)
                .collect::<anyhow::Result<_>>()?,
            hosts: self
                .sandbox_hosts
                .iter()
                .map(host)
                .collect::<anyhow::Result<_>>()?,
        })
    }

    /// The sandbox of sessions that are started with a key and don't choose one.
    pub(crate) fn key_sandbox(&self) -> anyhow::Result<SandboxLevel> {
        SandboxLevel::parse(&self.key_sandbox).with_context(|| {
            let names = SandboxLevel::NAMES.join(", ");
            format!(
                "key_sandbox in config.toml is {:?}, and must be one of {names}",
                self.key_sandbox
            )
        })
    }

    pub(crate) fn approval(&self) -> tiller_core::Approval {
        match self.approval {
            Approval::Ask => tiller_core::Approval::Ask,
            Approval::Auto => tiller_core::Approval::Auto,
        }
    }

    pub(crate) fn trusted_proxies(&self) -> anyhow::Result<TrustedProxies> {
        TrustedProxies::parse(&self.trusted_proxies)
            .map_err(|error| anyhow::anyhow!("trusted_proxies in config.toml is invalid: {error}"))
    }

    pub(crate) fn language(&self) -> tiller_server::Language {
        match self.language {
            Language::Chinese => tiller_server::Language::Chinese,
            Language::English => tiller_server::Language::English,
        }
    }

    pub(crate) fn retention(&self) -> Retention {
        let days = (self.retention_days > 0).then(|| Duration::from_hours(24) * self.retention_days);
        Retention {
            sessions: days,
            pieces: Duration::from_hours(u64::from(self.delta_retention_hours)),
        }
    }

    pub(crate) fn read(data_dir: &DataDir) -> anyhow::Result<Self> {
        let path = data_dir.config_file();
        let text = match std::fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Self::default()),
            Err(error) => return Err(error).with_context(|| format!("can't read {}", path.display())),
        };
        toml::from_str(&text).with_context(|| format!("{} is invalid", path.display()))
    }

    /// By default, agents may use half of the machine's memory.
    pub(crate) fn hibernation(&self) -> HibernationPolicy {
        let half = || tiller_server::total_memory() / 2;
        let budget = self.agent_memory_mb.map_or_else(half, |mb| mb * 1024 * 1024);
        HibernationPolicy {
            after: (self.hibernate_after_s > 0).then(|| Duration::from_secs(self.hibernate_after_s)),
            budget_bytes: (budget > 0).then_some(budget),
        }
    }

    /// The agents that use the Agent Client Protocol: their names and commands.
    pub(crate) fn acp_agents(&self) -> anyhow::Result<Vec<(String, Vec<String>)>> {
        let parsed = self.acp_agents.iter().map(|entry| {
            let (name, command) = entry.split_once('=').unwrap_or((entry, ""));
            let is_name = |name: &str| {
                let fits = |character: char| character.is_ascii_lowercase() || character.is_ascii_digit() || character == '-';
                !name.is_empty() && name.chars().all(fits) && !RESERVED.contains(&name)
            };
            let words: Vec<_> = command.split_whitespace().map(str::to_owned).collect();
            anyhow::ensure!(
                is_name(name) && !words.is_empty(),
                "acp_agents: {entry:?} is not `name=command`, with a name of small letters, digits and dashes that is \
                 not one of {}",
                RESERVED.join(", ")
            );
            Ok((name.to_owned(), words))
        });
        parsed.collect()
    }

    pub(crate) fn decision_grace(&self) -> Duration {
        Duration::from_secs(self.decision_grace_s)
    }

    /// `TILLER_LOG_FORMAT` takes precedence over the file.
    pub(crate) fn log_format(&self) -> anyhow::Result<log::Format> {
        match std::env::var("TILLER_LOG_FORMAT").as_deref() {
            Ok("text") => Ok(log::Format::Text),
            Ok("json") => Ok(log::Format::Json),
            Ok(other) => anyhow::bail!("TILLER_LOG_FORMAT is `text` or `json`, not '{other}'"),
            Err(_) => Ok(self.log_format),
        }
    }

    /// `TILLER_AGENT_GRACE` takes precedence over the file.
    pub(crate) fn agent_grace(&self) -> anyhow::Result<Duration> {
        let seconds = match std::env::var("TILLER_AGENT_GRACE") {
            Ok(text) => {
                let wrong = || format!("TILLER_AGENT_GRACE must be a number of seconds, not '{text}'");
                Some(text.parse().with_context(wrong)?)
            }
            Err(_) => self.agent_grace_s,
        };
        Ok(seconds.map_or(DEFAULT_GRACE, Duration::from_secs))
    }
}

#[cfg(test)]
mod tests {
    use super::{Config, OnStop, SandboxLevel, Titles};

    #[test]
    fn settings_are_read_and_mistakes_are_named() {
        let config: Config = toml::from_str("allowed_hosts = [\"tiller.example\"]").unwrap();
        assert_eq!(config.allowed_hosts, ["tiller.example"]);
        assert_eq!(config.titles, Titles::Model);
        let config: Config = toml::from_str("titles = \"prompt\"").unwrap();
        assert_eq!(config.titles, Titles::Prompt);
        assert_eq!(
            config.retention().sessions,
            Some(std::time::Duration::from_hours(720))
        );
        assert_eq!(config.approval(), tiller_core::Approval::Ask);
        let config: Config = toml::from_str("approval = \"auto\"").unwrap();
        assert_eq!(config.approval(), tiller_core::Approval::Auto);
        let config: Config = toml::from_str("retention_days = 0").unwrap();
        assert_eq!(config.retention().sessions, None);
        assert_eq!((config.on_stop, config.agent_grace_s), (OnStop::End, None));
        assert_eq!(config.shield(), tiller_process::ShieldMode::On);
        let config: Config = toml::from_str("shield = \"require\"").unwrap();
        assert_eq!(config.shield(), tiller_process::ShieldMode::Require);
        assert_eq!(config.key_sandbox().unwrap(), SandboxLevel::Off);
        let config: Config = toml::from_str(
            "sandbox_hosts = [\"*.example.org\"]\nsandbox_folders = [\"~/x\"]\nkey_sandbox = \"on\"",
        )
        .unwrap();
        let lists = config.sandbox().unwrap();
        assert!(lists.folders[0].is_absolute() && lists.folders[0].ends_with("x"));
        assert_eq!(lists.hosts[0].to_string(), "*.example.org");
        assert_eq!(config.key_sandbox().unwrap(), SandboxLevel::On);
        for wrong in ["sandbox_hosts = [\"a b\"]", "sandbox_folders = [\"x\"]"] {
            let config: Config = toml::from_str(wrong).unwrap();
            assert!(config.sandbox().unwrap_err().to_string().contains("config.toml"));
        }
        let config: Config = toml::from_str("key_sandbox = \"strict\"").unwrap();
        assert!(config.key_sandbox().is_err());
        let config: Config = toml::from_str("on_stop = \"keep\"\nagent_grace_s = 5").unwrap();
        assert_eq!((config.on_stop, config.agent_grace_s), (OnStop::Keep, Some(5)));
        let error = toml::from_str::<Config>("allowed_host = []")
            .unwrap_err()
            .to_string();
        assert!(error.contains("unknown field `allowed_host`"), "{error}");
    }
}
