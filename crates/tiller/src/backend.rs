//! Which agent runs, and why.

use std::path::PathBuf;

use anyhow::Context;
use tiller_agent::{Executable, Finder};
use tiller_core::backend::claude::ClaudeBackend;
use tiller_core::backend::{BackendInfo, Capabilities};

use crate::cli::BackendChoice;

/// The hidden command under which this executable is the demo agent.
pub(crate) const DEMO_AGENT: &str = "demo-agent";

/// The hidden command under which this executable keeps an agent.
pub(crate) const KEEPER: &str = "keeper";

const INSTALL: &str = "npm install -g @anthropic-ai/claude-code";

pub(crate) fn choose(
    choice: BackendChoice,
    claude_bin: Option<PathBuf>,
    claude_home: Option<PathBuf>,
) -> anyhow::Result<ClaudeBackend> {
    let finder = Finder::from_env();
    // A file that the user named must be there, whatever else is.
    let found = match &claude_bin {
        Some(path) => Ok(finder.resolve(path).context("--claude-bin can't be used")?),
        None => finder.find(),
    };
    match (choice, found) {
        (BackendChoice::Auto | BackendChoice::Claude, Ok(executable)) => {
            let reason = format!("Claude Code was found at {}.", executable.path.display());
            Ok(claude(executable, claude_home, reason))
        }
        (BackendChoice::Claude, Err(error)) => {
            Err(error).with_context(|| format!("install it with `{INSTALL}`"))
        }
        (BackendChoice::Auto, Err(_)) => {
            let reason =
                format!("Claude Code was not found. Install it with `{INSTALL}`, then start Tiller again.");
            demo(claude_home, reason)
        }
        (BackendChoice::Demo, _) => {
            let reason =
                "The demo agent was chosen with --backend. Start Tiller without it to use Claude Code.";
            demo(claude_home, reason.to_owned())
        }
    }
}

fn claude(executable: Executable, claude_home: Option<PathBuf>, reason: String) -> ClaudeBackend {
    let capabilities = Capabilities {
        streaming: true,
        permissions: true,
        resume: true,
        subagents: true,
    };
    let info = BackendInfo {
        name: "claude",
        version: None,
        transport: "stdio",
        reason,
        capabilities,
    };
    ClaudeBackend::new(executable, claude_home, info)
}

fn demo(claude_home: Option<PathBuf>, reason: String) -> anyhow::Result<ClaudeBackend> {
    let this =
        std::env::current_exe().context("can't find the demo agent, which is this executable itself")?;
    // Run as a script is by its interpreter: this executable, and the command as its first argument.
    let executable = Executable {
        path: DEMO_AGENT.into(),
        runtime: Some(this),
    };
    let capabilities = Capabilities {
        streaming: true,
        permissions: true,
        resume: true,
        subagents: false,
    };
    let version = Some(env!("CARGO_PKG_VERSION").to_owned());
    let info = BackendInfo {
        name: "demo",
        version,
        transport: "stdio",
        reason,
        capabilities,
    };
    Ok(ClaudeBackend::new(executable, claude_home, info))
}
