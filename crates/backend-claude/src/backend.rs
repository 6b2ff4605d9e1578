//! The CLI as a backend: its name, version, options and abilities.

use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use tiller_agent::cli::Executable;
use tiller_core::backend::{
    Abilities, Account, AgentChannels, Attach, Backend, BackendInfo, Connections, Drivers, HOOK_TIME, Launch,
    Leftovers, OptionRules, SandboxLists,
};
use tiller_keeper::{KeeperConfig, Signs};

use crate::abilities::{CliAccount, NoAccount, Swept, Titles};
use crate::inquiry::LastOffers;
use crate::launcher::Launcher;
use crate::lease::Claims;
use crate::options::ClaudeOptions;
use crate::running::Running;
use crate::runs::Runs;
use crate::sandbox::Sandboxing;

/// The CLI's mark of the end of a turn. In text that a tool or a model writes, the quotes would be escaped.
const TURN_END: &[u8] = b"\"type\":\"result\"";

/// How it asks for anything, takes a question back, and is answered.
const ASKS: &[u8] = b"\"type\":\"control_request\"";
const WITHDRAWS: &[u8] = b"\"type\":\"control_cancel_request\"";
const ANSWERS: &[u8] = b"\"type\":\"control_response\"";

/// Starts one executable for every session.
pub struct ClaudeBackend {
    launcher: Launcher,
    info: BackendInfo,
    /// Determined in the background: the CLI takes a while to print it.
    version: Arc<OnceLock<String>>,
    rules: Arc<ClaudeOptions>,
    account: Arc<dyn Account>,
    /// Whether this backend ends agents that no session continues.
    sweeps: bool,
}

impl ClaudeBackend {
    /// `claude_home` is the CLI's folder for settings and transcripts, if not the usual one.
    pub fn new(executable: Executable, claude_home: Option<PathBuf>, info: BackendInfo) -> Self {
        let offers = LastOffers::default();
        let sandboxing = Sandboxing {
            claude_home: claude_home.clone(),
            ..Sandboxing::default()
        };
        let version = Arc::default();
        Self {
            info,
            account: Arc::new(CliAccount::new(executable.clone(), claude_home.clone())),
            rules: Arc::new(ClaudeOptions::new(
                offers.clone(),
                sandboxing.clone(),
                Arc::clone(&version),
            )),
            version,
            launcher: Launcher {
                executable,
                claude_home,
                offers,
                claims: Claims::default(),
                keeping: None,
                hook_time: HOOK_TIME,
                runs: None,
                running: Running::default(),
                sandboxing,
            },
            sweeps: false,
        }
    }

    /// Lets agents connect with `--sdk-url`, which old releases of the CLI support, instead of using pipes.
    #[must_use]
    pub fn connecting(mut self) -> Self {
        self.launcher.runs = Some(Runs::default());
        self
    }

    /// For an agent that behaves like the CLI and needs no account.
    #[must_use]
    pub fn without_account(mut self) -> Self {
        self.account = Arc::new(NoAccount);
        self
    }

    /// Gives every agent a keeper, so that it outlives this program.
    #[must_use]
    pub fn kept(mut self, keeping: KeeperConfig) -> Self {
        self.launcher.keeping = Some(KeeperConfig {
            signs: Signs {
                turn_end: TURN_END.to_vec(),
                asks: ASKS.to_vec(),
                withdraws: WITHDRAWS.to_vec(),
                answers: ANSWERS.to_vec(),
            },
            ..keeping
        });
        self
    }

    /// Ends agents of an earlier server that no session continues. For one of the backends that share a folder of runs.
    #[must_use]
    pub fn sweeping(mut self) -> Self {
        self.sweeps = true;
        self
    }

    /// What every sandbox has beside what the agent needs.
    #[must_use]
    pub fn sandboxed_with(mut self, configured: SandboxLists) -> Self {
        self.launcher.sandboxing.configured = configured;
        let (offers, sandboxing) = (self.launcher.offers.clone(), self.launcher.sandboxing.clone());
        self.rules = Arc::new(ClaudeOptions::new(offers, sandboxing, Arc::clone(&self.version)));
        self
    }

    /// How long an agent waits for the answer to a hook call, if not [`HOOK_TIME`].
    #[must_use]
    pub fn waiting_for_hooks(mut self, time: Duration) -> Self {
        self.launcher.hook_time = time;
        self
    }

    /// Begins to determine the executable's version, which [`Backend::info`] has as soon as it is known.
    pub fn detect_version(&self) {
        if self.info.version.is_some() {
            return;
        }
        let (executable, version) = (self.launcher.executable.clone(), Arc::clone(&self.version));
        tokio::spawn(async move {
            match executable.version().await {
                Ok(found) => drop(version.set(found.to_string())),
                Err(error) => tracing::warn!(%error, "can't tell which version of Claude Code this is"),
            }
        });
    }

    #[cfg(target_os = "linux")]
    #[expect(clippy::unnecessary_wraps, reason = "other systems have none")]
    fn drivers(&self) -> Option<Arc<dyn Drivers>> {
        let usual = || Some(std::env::home_dir()?.join(".claude"));
        let home = self.launcher.claude_home.clone().or_else(usual);
        Some(Arc::new(crate::abilities::FoundDrivers {
            claims: self.launcher.claims.clone(),
            home: home.unwrap_or_default(),
        }))
    }

    #[cfg(not(target_os = "linux"))]
    fn drivers(&self) -> Option<Arc<dyn Drivers>> {
        None
    }
}

impl Backend for ClaudeBackend {
    fn info(&self) -> BackendInfo {
        let mut info = self.info.clone();
        info.version = info.version.or_else(|| self.version.get().cloned());
        info
    }

    fn options(&self) -> Arc<dyn OptionRules> {
        Arc::clone(&self.rules) as Arc<dyn OptionRules>
    }

    fn abilities(&self) -> Abilities {
        let Launcher {
            executable,
            claude_home,
            offers,
            keeping,
            runs,
            running,
            ..
        } = self.launcher.clone();
        let sweeps = self.sweeps.then_some(Swept(keeping));
        let titles = Titles {
            executable,
            claude_home,
            shield: self.launcher.shield(),
            running: running.clone(),
        };
        let running = Arc::new(running);
        Abilities {
            titles: Some(Arc::new(titles)),
            drivers: self.drivers(),
            connections: runs.map(|runs| Arc::new(runs) as Arc<dyn Connections>),
            catalogue: Some(Arc::new(offers)),
            leftovers: sweeps.map(|swept| Arc::new(swept) as Arc<dyn Leftovers>),
            fork: Some(Arc::new(self.launcher.clone())),
            rewind: Some(Arc::clone(&running) as _),
            hooks: Some(Arc::clone(&running) as _),
            inquire: Some(running),
            account: Some(Arc::clone(&self.account)),
        }
    }

    fn launch(&self, launch: Launch) -> AgentChannels {
        self.launcher.start(launch, None)
    }

    fn attach(&self, attach: Attach) -> AgentChannels {
        self.launcher.attach(attach)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[tokio::test]
    async fn a_run_that_starts_after_the_list_of_leftovers_is_not_a_leftover() {
        let folder = tempfile::tempdir().unwrap();
        let run = |name: &str| folder.path().join(name);
        let executable = Executable {
            path: "claude".into(),
            runtime: None,
        };
        let backend = ClaudeBackend::new(executable, None, BackendInfo::named("claude"))
            .sweeping()
            .kept(KeeperConfig {
                folder: folder.path().to_owned(),
                program: "keeper".into(),
                args: Vec::new(),
                grace: Duration::ZERO,
                decision_grace: Duration::from_mins(1),
                signs: Signs::default(),
                shield: tiller_process::Shield::none(),
            });
        for name in ["left", "wanted"] {
            std::fs::create_dir(run(name)).unwrap();
        }
        let leftovers = backend.abilities().leftovers.unwrap();
        leftovers.keep_only(HashSet::from(["wanted".to_owned()]));
        std::fs::create_dir(run("new")).unwrap();
        while run("left").exists() {
            tokio::task::yield_now().await;
        }
        // Leftovers are removed one after the other, in the background.
        for _ in 0..100 {
            tokio::task::yield_now().await;
        }
        assert!(run("wanted").exists() && run("new").exists());
    }
}
