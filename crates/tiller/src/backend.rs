//! Chooses the agent that runs, with the reason.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context;
use tiller_agent::cli::{Executable, Finder};
use tiller_backend_acp::{AcpAgent, AcpBackend};
use tiller_backend_claude::ClaudeBackend;
use tiller_core::backend::{BackendInfo, Capabilities, SandboxLists, WhyChosen};
use tiller_keeper::{KeeperConfig, Signs};
use tiller_process::{Shield, ShieldMode};

use crate::cli::{BackendChoice, TransportChoice};
use crate::data_dir::DataDir;

/// The hidden command under which this executable is the demo agent.
pub(crate) const DEMO_AGENT: &str = "demo-agent";

/// The hidden command under which this executable keeps an agent.
pub(crate) const KEEPER: &str = "keeper";

/// The hidden command under which this executable shields an agent.
pub(crate) const SHIELD: &str = "shield";

const INSTALL: &str = "npm install -g @anthropic-ai/claude-code";

/// Agents outlive this process: each has a keeper, which is this executable again.
pub(crate) fn keeping(
    data_dir: &DataDir,
    grace: Duration,
    decision_grace: Duration,
    shield: Shield,
) -> KeeperConfig {
    KeeperConfig {
        folder: data_dir.path().join("runs"),
        program: own_executable(),
        args: vec![KEEPER.into()],
        grace,
        decision_grace,
        // Each backend knows how its agents speak.
        signs: Signs::default(),
        shield,
    }
}

/// The shield of agents, which hides Tiller's own files.
pub(crate) fn shield(mode: ShieldMode, data_dir: &DataDir, claude_home: &Path) -> Shield {
    let shield = Shield::new(mode, own_executable(), vec![SHIELD.into()]);
    let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
    if real(claude_home).starts_with(real(data_dir.path())) {
        return shield.unavailable(
            "Claude Code's folder is inside Tiller's data folder, which the shield hides. Choose another --data-dir.",
        );
    }
    let mut hidden = vec![data_dir.path().to_owned()];
    // Another Tiller of this user may be there.
    hidden.extend(DataDir::locate(None).ok().map(|usual| usual.path().to_owned()));
    hidden.dedup();
    shield
        .hiding(hidden)
        .emptying(vec![tiller_backend_claude::lease_folder()])
}

/// This executable, even after an upgrade has replaced its file: keepers must match their server.
fn own_executable() -> PathBuf {
    let this_one = PathBuf::from("/proc/self/exe");
    if this_one.exists() {
        return this_one;
    }
    std::env::current_exe().unwrap_or(this_one)
}

/// The available agents.
pub(crate) struct Found {
    /// For sessions that don't choose one.
    pub(crate) default: ClaudeBackend,
    pub(crate) others: Vec<ClaudeBackend>,
}

pub(crate) async fn choose(
    choice: BackendChoice,
    transport: TransportChoice,
    claude_bin: Option<PathBuf>,
    claude_home: Option<PathBuf>,
) -> anyhow::Result<Found> {
    let finder = Finder::from_env();
    // A file that the user named must exist, whatever else is installed.
    let found = match &claude_bin {
        Some(path) => Ok(finder.resolve(path).context("--claude-bin can't be used")?),
        None => finder.find(),
    };
    match (choice, found) {
        (BackendChoice::Auto | BackendChoice::Claude, Ok(executable)) => {
            let (why, words) = connects(&executable, transport).await;
            let reason = format!("Claude Code was found at {}. {words}", executable.path.display());
            let backend = claude(executable, claude_home.clone(), why, reason);
            let default = if why == WhyChosen::Connects {
                backend.connecting()
            } else {
                backend
            };
            let built_in = "The demo agent is part of Tiller.".to_owned();
            let others = vec![demo(claude_home, WhyChosen::DemoChosen, built_in)?];
            Ok(Found { default, others })
        }
        (BackendChoice::Claude, Err(error)) => {
            Err(error).with_context(|| format!("install it with `{INSTALL}`"))
        }
        (BackendChoice::Auto, Err(_)) => {
            let reason =
                format!("Claude Code was not found. Install it with `{INSTALL}`, then start Tiller again.");
            let default = demo(claude_home, WhyChosen::NotInstalled, reason)?;
            let others = Vec::new();
            Ok(Found { default, others })
        }
        (BackendChoice::Demo, found) => {
            let reason =
                "The demo agent was chosen with --backend. Start Tiller without it to use Claude Code.";
            let default = demo(claude_home.clone(), WhyChosen::DemoChosen, reason.to_owned())?;
            let installed = found.ok().map(|executable| {
                let reason = format!("Claude Code was found at {}.", executable.path.display());
                claude(executable, claude_home, WhyChosen::Found, reason)
            });
            let others = installed.into_iter().collect();
            Ok(Found { default, others })
        }
    }
}

/// An agent that speaks the Agent Client Protocol, started with this command.
pub(crate) fn acp(
    name: String,
    command: &[String],
    keeping: KeeperConfig,
    configured: &SandboxLists,
) -> AcpBackend {
    let (program, args) = command
        .split_first()
        .map_or(("", &[][..]), |(program, args)| (program.as_str(), args));
    let known = ACP_PROGRAMS.iter().find(|known| known.program == program);
    let how_to_install = match known {
        Some(known) => format!("Install it with `{}`.", known.install),
        None => {
            format!("Install `{program}` so that it is found in PATH, or correct acp_agents in config.toml.")
        }
    };
    let agent = AcpAgent {
        title: known.map_or_else(|| name.clone(), |known| known.title.to_owned()),
        name,
        program: program.into(),
        args: args.iter().map(Into::into).collect(),
        how_to_install,
        sandbox: known.map(AcpProgram::sandbox).unwrap_or_default().and(configured),
    };
    AcpBackend::new(agent, keeping)
}

/// A program that is known to speak the Agent Client Protocol.
struct AcpProgram {
    program: &'static str,
    title: &'static str,
    install: &'static str,
    /// Where it keeps its own files, in the home folder.
    folders: &'static [&'static str],
    /// Whom it speaks to, as its maker ships it.
    hosts: &'static [&'static str],
}

impl AcpProgram {
    fn sandbox(&self) -> SandboxLists {
        let home = std::env::home_dir().unwrap_or_default();
        SandboxLists {
            folders: self.folders.iter().map(|folder| home.join(folder)).collect(),
            hosts: self.hosts.iter().filter_map(|host| host.parse().ok()).collect(),
        }
    }
}

const ACP_PROGRAMS: &[AcpProgram] = &[
    AcpProgram {
        program: "opencode",
        title: "opencode",
        install: "npm install -g opencode-ai",
        folders: &[
            ".cache/opencode",
            ".config/opencode",
            ".local/share/opencode",
            ".local/state/opencode",
        ],
        hosts: &[
            "api.anthropic.com",
            "api.openai.com",
            "models.dev",
            "opencode.ai",
            "openrouter.ai",
        ],
    },
    AcpProgram {
        program: "gemini",
        title: "Gemini CLI",
        install: "npm install -g @google/gemini-cli",
        folders: &[".gemini"],
        hosts: &[
            "cloudcode-pa.googleapis.com",
            "generativelanguage.googleapis.com",
            "oauth2.googleapis.com",
        ],
    },
    AcpProgram {
        program: "codex-acp",
        title: "Codex",
        install: "npm install -g @agentclientprotocol/codex-acp @openai/codex",
        folders: &[".codex"],
        hosts: &["api.openai.com", "auth.openai.com", "chatgpt.com"],
    },
    AcpProgram {
        program: "qwen",
        title: "Qwen Code",
        install: "npm install -g @qwen-code/qwen-code",
        folders: &[".qwen"],
        hosts: &["chat.qwen.ai", "dashscope.aliyuncs.com", "portal.qwen.ai"],
    },
    AcpProgram {
        program: "goose",
        title: "goose",
        install: "npm install -g @aaif/goose",
        folders: &[".config/goose", ".local/share/goose", ".local/state/goose"],
        hosts: &["api.anthropic.com", "api.openai.com", "openrouter.ai"],
    },
    AcpProgram {
        program: "copilot",
        title: "GitHub Copilot CLI",
        install: "npm install -g @github/copilot",
        folders: &[".copilot"],
        hosts: &["api.github.com", "github.com", "*.githubcopilot.com"],
    },
    AcpProgram {
        program: "kimi",
        title: "Kimi Code",
        install: "npm install -g @moonshot-ai/kimi-code",
        folders: &[".kimi"],
        hosts: &["api.kimi.com", "api.moonshot.ai", "api.moonshot.cn"],
    },
    AcpProgram {
        program: "vibe-acp",
        title: "Mistral Vibe",
        install: "pip install mistral-vibe",
        folders: &[".vibe"],
        hosts: &["api.mistral.ai"],
    },
];

/// Whether agents connect to this server, and why.
async fn connects(executable: &Executable, transport: TransportChoice) -> (WhyChosen, String) {
    let stdio = |why, words: &str| (why, format!("It uses stdio, {words}."));
    match transport {
        TransportChoice::Auto => stdio(WhyChosen::Found, "which every version supports"),
        TransportChoice::Stdio => stdio(WhyChosen::StdioChosen, "as chosen with --transport"),
        TransportChoice::SdkUrl => match executable.version().await {
            Ok(version) if version.capabilities().sdk_url => {
                let words = format!(
                    "It connects to this server (--sdk-url), as chosen with --transport and supported by version {version}."
                );
                (WhyChosen::Connects, words)
            }
            Ok(version) => stdio(
                WhyChosen::CannotConnect,
                &format!(
                    "although --transport says sdk-url: version {version} connects to its maker's servers only. \
                     2.1.113 is the last one known to connect to others"
                ),
            ),
            Err(error) => stdio(
                WhyChosen::VersionUnknown,
                &format!("although --transport is sdk-url, because its version is unknown ({error})"),
            ),
        },
    }
}

fn claude(
    executable: Executable,
    claude_home: Option<PathBuf>,
    why: WhyChosen,
    reason: String,
) -> ClaudeBackend {
    let capabilities = Capabilities {
        streaming: true,
        permissions: true,
        resume: true,
        subagents: true,
    };
    let info = BackendInfo {
        name: "claude".to_owned(),
        title: "Claude Code".to_owned(),
        version: None,
        installed: true,
        how_to_install: None,
        transport: if why == WhyChosen::Connects {
            "sdk-url"
        } else {
            "stdio"
        },
        reason,
        why,
        path: Some(executable.path.display().to_string()),
        capabilities,
    };
    ClaudeBackend::new(executable, claude_home, info)
}

fn demo(claude_home: Option<PathBuf>, why: WhyChosen, reason: String) -> anyhow::Result<ClaudeBackend> {
    let this =
        std::env::current_exe().context("can't find the demo agent, which is this executable itself")?;
    // Started as a script with its interpreter: this executable, and the command as its first argument.
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
        name: "demo".to_owned(),
        title: "Demo agent".to_owned(),
        version,
        installed: true,
        how_to_install: None,
        transport: "stdio",
        reason,
        why,
        path: None,
        capabilities,
    };
    Ok(ClaudeBackend::new(executable, claude_home, info).without_account())
}
