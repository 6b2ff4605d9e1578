//! The optional abilities of this backend.

#[cfg(target_os = "linux")]
use std::collections::HashMap;
use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use futures_util::future::BoxFuture;
use tiller_agent::Options;
use tiller_agent::cli::Executable;
use tiller_agent::control::{Reply, RequestId};
use tiller_core::backend::{
    Account, AgentChannels, Fork, ForkOrigin, HOOK_TIME, Hooks, Inquire, Inquiry, InquiryFailed, Launch,
    Leftovers, Rewind, Rewound, TitleWriter,
};
use tiller_core::{RawJson, title_from_model};
#[cfg(target_os = "linux")]
use tiller_core::{
    Timestamp,
    backend::{Driver, Drivers},
};
use tiller_keeper::KeeperConfig;
use tiller_process::Shield;
use tokio::sync::Semaphore;

#[cfg(target_os = "linux")]
use crate::driver;
use crate::inquiry::{LastOffers, aside, initialize, inquire, rewind, title};
use crate::launcher::{GRACE, Launcher, start_unkept};
use crate::lease::Lease;
#[cfg(target_os = "linux")]
use crate::lease::{self, Claims};
use crate::running::Running;

/// How long a title may take while a caller waits for it. Starting the CLI is most of it.
const TITLE_TIME: Duration = Duration::from_secs(30);

/// The CLI's hook events.
const HOOK_EVENTS: &[&str] = &[
    "PreToolUse",
    "PostToolUse",
    "UserPromptSubmit",
    "Stop",
    "SubagentStop",
    "PreCompact",
];

/// How long the CLI's answer about the login is cached: asking starts a process.
const LOGIN_LIFETIME: Duration = Duration::from_secs(30);

/// Asks the CLI whether the user is logged in, one caller at a time.
#[derive(Clone)]
pub(crate) struct CliAccount {
    executable: Executable,
    claude_home: Option<PathBuf>,
    turn: Arc<Semaphore>,
    last: Arc<Mutex<Option<LastAnswer>>>,
}

#[derive(Clone, Copy)]
struct LastAnswer {
    at: Instant,
    signed_in: Option<bool>,
}

impl CliAccount {
    pub(crate) fn new(executable: Executable, claude_home: Option<PathBuf>) -> Self {
        Self {
            executable,
            claude_home,
            turn: Arc::new(Semaphore::new(1)),
            last: Arc::default(),
        }
    }

    fn last(&self) -> std::sync::MutexGuard<'_, Option<LastAnswer>> {
        self.last.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Account for CliAccount {
    fn signed_in(&self) -> BoxFuture<'static, Option<bool>> {
        let account = self.clone();
        Box::pin(async move {
            let _turn = account.turn.acquire().await.ok()?;
            let last = *account.last();
            if let Some(last) = last.filter(|last| last.at.elapsed() < LOGIN_LIFETIME) {
                return last.signed_in;
            }
            let login = account.executable.login(account.claude_home.as_deref()).await;
            let signed_in = match login {
                Ok(login) => Some(login.logged_in),
                Err(error) => {
                    tracing::debug!(%error, "can't tell whether Claude Code is logged in");
                    None
                }
            };
            let at = Instant::now();
            *account.last() = Some(LastAnswer { at, signed_in });
            signed_in
        })
    }
}

/// For an agent that needs no account.
pub(crate) struct NoAccount;

impl Account for NoAccount {
    fn signed_in(&self) -> BoxFuture<'static, Option<bool>> {
        Box::pin(std::future::ready(Some(true)))
    }
}

impl Fork for Launcher {
    fn launch(&self, launch: Launch, origin: ForkOrigin) -> AgentChannels {
        self.start(launch, Some(&origin))
    }
}

impl Rewind for Running {
    fn rewind(
        &self,
        run: &str,
        prompt: String,
        dry_run: bool,
    ) -> BoxFuture<'static, Result<Rewound, InquiryFailed>> {
        let (running, run) = (self.clone(), run.to_owned());
        Box::pin(async move {
            let link = running.link(&run).await.ok_or(InquiryFailed::NoAgent)?;
            rewind(&link, prompt, dry_run).await
        })
    }
}

impl Inquire for Running {
    fn inquire(&self, run: &str, inquiry: Inquiry) -> BoxFuture<'static, Result<RawJson, InquiryFailed>> {
        let (running, run) = (self.clone(), run.to_owned());
        Box::pin(async move {
            let link = running.link(&run).await.ok_or(InquiryFailed::NoAgent)?;
            inquire(&link, inquiry).await
        })
    }
}

impl Hooks for Running {
    fn events(&self) -> &'static [&'static str] {
        HOOK_EVENTS
    }

    fn answer(&self, run: &str, agent_request: String, output: RawJson) {
        let (running, run) = (self.clone(), run.to_owned());
        aside(async move {
            let Some(link) = running.link(&run).await else {
                return;
            };
            let Ok(output) = serde_json::value::RawValue::from_string(output.as_str().to_owned()) else {
                tracing::error!("the answer to a callback is not JSON");
                return;
            };
            if let Err(error) = link
                .respond(&RequestId::from(agent_request), Reply::Success(output))
                .await
            {
                tracing::debug!(%error, "the answer to a callback came too late");
            }
        });
    }
}

/// Ends runs that no session continues, and removes stale leases.
pub(crate) struct Swept(pub(crate) Option<KeeperConfig>);

impl Leftovers for Swept {
    fn keep_only(&self, wanted: HashSet<String>) {
        tokio::task::spawn_blocking(Lease::sweep);
        let Some(keeping) = self.0.clone() else {
            return;
        };
        // Listed now: a run that starts later is not a leftover, although it is not among the wanted ones.
        let mut left = tiller_keeper::runs(&keeping).unwrap_or_else(|error| {
            tracing::warn!(%error, "can't look for agents of an earlier server");
            Vec::new()
        });
        left.retain(|run| !wanted.contains(run));
        tokio::spawn(async move {
            for run in &left {
                tracing::info!(run, "ending an agent of an earlier server");
                tiller_keeper::remove(&keeping, run).await;
            }
        });
    }
}

/// Asks a CLI that is started for this alone, or one that runs.
pub(crate) struct Titles {
    pub(crate) executable: Executable,
    pub(crate) claude_home: Option<PathBuf>,
    pub(crate) shield: Shield,
    pub(crate) running: Running,
}

impl TitleWriter for Titles {
    fn title(&self, prompt: String, cwd: PathBuf) -> BoxFuture<'static, Option<String>> {
        let (executable, shield) = (self.executable.clone(), self.shield.clone());
        let mut options = Options::new()
            .cwd(cwd)
            .exact_cwd(true)
            .persist(false)
            .strict_mcp(true)
            .tools([""; 0])
            .grace(GRACE)
            .env_remove_prefix("TILLER_");
        if let Some(home) = &self.claude_home {
            options = options.claude_home(home);
        }
        Box::pin(async move {
            // Nothing is lost with it, so it needs no keeper.
            let (link, mut inbox) = match start_unkept(&executable, &options, &shield) {
                Ok(connected) => connected,
                Err(error) => {
                    tracing::debug!(%error, "no agent for a title");
                    return None;
                }
            };
            let _in_line = initialize(&link, &[], HOOK_TIME, LastOffers::default(), None);
            let asked = title(&link, &prompt);
            // Its other output is read so that the CLI does not wait for a reader.
            let reading = async { while inbox.next().await.is_some() {} };
            let answer = tokio::select! {
                answer = tokio::time::timeout(TITLE_TIME, asked) => answer.ok()?.ok(),
                () = reading => None,
            };
            link.kill().await;
            title_from_model(answer?.as_str())
        })
    }

    fn title_by(&self, run: &str, prompt: String) -> BoxFuture<'static, Option<String>> {
        let (running, run) = (self.running.clone(), run.to_owned());
        Box::pin(async move {
            let link = running.link(&run).await?;
            match title(&link, &prompt).await {
                Ok(answer) => title_from_model(answer.as_str()),
                Err(error) => {
                    tracing::debug!(%error, "no title from the agent");
                    None
                }
            }
        })
    }
}

/// Finds CLIs that were started elsewhere.
#[cfg(target_os = "linux")]
pub(crate) struct FoundDrivers {
    pub(crate) claims: Claims,
    pub(crate) home: PathBuf,
}

#[cfg(target_os = "linux")]
impl Drivers for FoundDrivers {
    fn driver(
        &self,
        conversation: String,
        cwd: PathBuf,
        since: Timestamp,
    ) -> BoxFuture<'static, Option<Driver>> {
        Box::pin(found_driver(conversation, cwd, since, self.home.clone()))
    }

    fn claim(
        &self,
        conversation: String,
        cwd: PathBuf,
        since: Timestamp,
    ) -> BoxFuture<'static, Option<Driver>> {
        let (claims, home) = (self.claims.clone(), self.home.clone());
        Box::pin(async move {
            let deadline = tokio::time::Instant::now() + lease::PATIENCE;
            // The holder of the lease has an agent, or is about to have one: it will be found as the driver.
            while !claims.make(&conversation).await {
                let (conversation, cwd, home) = (conversation.clone(), cwd.clone(), home.clone());
                if let Some(driver) = found_driver(conversation, cwd, since, home).await {
                    return Some(driver);
                }
                if tokio::time::Instant::now() > deadline {
                    return None;
                }
            }
            // Or a CLI in a terminal, which knows no leases.
            let driver = found_driver(conversation.clone(), cwd, since, home).await;
            if driver.is_some() {
                drop(claims.take(&conversation));
            }
            driver
        })
    }

    fn drivers(
        &self,
        conversations: Vec<(String, PathBuf)>,
    ) -> BoxFuture<'static, Option<HashMap<String, Driver>>> {
        let home = self.home.clone();
        Box::pin(async move {
            let found = tokio::task::spawn_blocking(move || driver::find_all(&conversations, &home));
            found.await.ok()
        })
    }

    fn competing_drivers(&self, agents: Vec<(String, u32)>) -> BoxFuture<'static, HashMap<String, Driver>> {
        let home = self.home.clone();
        Box::pin(async move {
            let found = tokio::task::spawn_blocking(move || driver::find_rivals(&agents, &home));
            found.await.unwrap_or_default()
        })
    }

    fn end_driver(&self, driver: Driver) -> BoxFuture<'static, Result<(), String>> {
        Box::pin(async move { driver::end(&driver).await })
    }
}

/// The process that drives the conversation, if this server did not start it.
#[cfg(target_os = "linux")]
async fn found_driver(
    conversation: String,
    cwd: PathBuf,
    since: Timestamp,
    claude_home: PathBuf,
) -> Option<Driver> {
    let found = tokio::task::spawn_blocking(move || {
        driver::find(&driver::Wanted {
            conversation: &conversation,
            cwd: &cwd,
            since,
            claude_home: &claude_home,
        })
    });
    found.await.ok().flatten()
}
