//! The command line.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use tiller_core::SessionId;
use tiller_core::audit::Head;

use crate::data_dir::DataDir;

/// Steer many coding agents from one place.
#[derive(Parser)]
#[command(version, about, after_help = "Without a command, `tiller` runs `serve`.")]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Option<Command>,
    #[command(flatten)]
    pub(crate) serve: ServeArgs,
}

#[derive(Subcommand)]
pub(crate) enum Command {
    /// Serve the web UI and the APIs (the default).
    Serve,
    /// Run one task and wait for its result; for scripts and CI.
    Run(RunArgs),
    /// List the sessions.
    Sessions {
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Follow a session in the terminal: type to send a message, Ctrl-C stops the turn, Ctrl-D leaves.
    Attach {
        /// The session's id, or its beginning.
        session: String,
    },
    /// Check the installation, and say how to fix what is wrong.
    Doctor {
        /// Print JSON.
        #[arg(long)]
        json: bool,
        /// Also write an archive (.tar.gz) for those who help you: findings, settings and sizes, without secrets and without
        /// what was said in sessions.
        #[arg(long, value_name = "FILE", num_args = 0..=1, default_missing_value = "tiller-doctor.tar.gz")]
        bundle: Option<PathBuf>,
    },
    /// Check or export the audit log: decisions, sign-ins, keys, grants and refusals.
    #[command(subcommand)]
    Audit(AuditCommand),
    /// Replace the running server, with a newer version if installed; agents continue
    Restart,
    /// Print a new sign-in link for the running server.
    Link,
    /// Create, list or revoke API keys.
    #[command(subcommand)]
    Key(KeyCommand),
}

#[derive(Subcommand)]
pub(crate) enum AuditCommand {
    /// Check that no entry was changed or removed.
    Verify {
        /// An entry that must be in the log, as an earlier `verify` printed it: shows that the end was not cut off either.
        #[arg(long, value_name = "SEQ:HASH")]
        head: Option<Head>,
    },
    /// Print every entry as a line of JSON.
    Export,
}

#[derive(Subcommand)]
pub(crate) enum KeyCommand {
    /// Create a key and print it. It is shown only once.
    Create(Box<KeyArgs>),
    /// List the keys.
    List,
    /// Revoke a key and stop what it started, within five seconds.
    Revoke {
        /// The key's name or id.
        #[arg(value_name = "KEY")]
        key: String,
        /// Let what was started with it go on; it is yours to steer then.
        #[arg(long)]
        keep_sessions: bool,
    },
}

/// With `--root`, the key's agents may work only beneath these folders.
#[derive(Args)]
pub(crate) struct KeyArgs {
    /// What the key is for.
    pub(crate) name: String,

    /// What the key allows: read (list and watch), run (start, continue, stop, delete), approve (answer decisions, and
    /// grant modes, tools, rules and hooks).
    #[arg(long, default_value = "read,run,approve")]
    pub(crate) scope: String,

    /// Who answers when an agent asks for permission, in sessions that the key starts without choosing: ask (the user)
    /// or auto (everything is allowed except questions and plans; needs the scope approve). Default: the setting in
    /// config.toml.
    #[arg(long, value_name = "ask|auto")]
    pub(crate) approval: Option<String>,

    /// A permission mode that the key may choose; can be repeated [default: all]
    #[arg(long, value_name = "MODE", value_parser = ["default", "acceptEdits", "plan", "auto", "bypassPermissions"])]
    pub(crate) mode: Vec<String>,

    /// A tool or rule that the key may grant; can be repeated [default: all]
    #[arg(long, value_name = "TOOL")]
    pub(crate) tool: Vec<String>,

    /// The maximum cost of each of its sessions.
    #[arg(long, value_name = "USD", value_parser = above_zero, allow_negative_numbers = true)]
    pub(crate) budget_usd: Option<f64>,

    /// Its agents run shielded, or not at all.
    #[arg(long)]
    pub(crate) shield: bool,

    /// Its agents run in a sandbox, or not at all: they can write to their working directory, to the agent's own files and to
    /// a /tmp of their own, and reach the hosts of their model and those of sandbox_hosts in config.toml.
    #[arg(long)]
    pub(crate) sandbox: bool,

    /// With --sandbox, a folder that its agents can write to as well; may be given several times.
    #[arg(long, value_name = "DIR", requires = "sandbox")]
    pub(crate) sandbox_folder: Vec<std::path::PathBuf>,

    /// With --sandbox, a host that its agents can reach as well, such as packages.example.org or *.example.com; may be given
    /// several times.
    #[arg(long, value_name = "HOST", requires = "sandbox")]
    pub(crate) sandbox_host: Vec<tiller_process::HostPattern>,

    /// The sessions that the key can see beside its own.
    #[arg(long, value_name = "WHICH", default_value = "own", conflicts_with_all = ["sees_session", "sees_folder"])]
    pub(crate) sees: SeesChoice,

    /// A session that it sees beside its own; may be given several times
    #[arg(long, value_name = "ID", conflicts_with = "sees_folder")]
    pub(crate) sees_session: Vec<SessionId>,

    /// A folder whose sessions it sees beside its own; may be given several times
    #[arg(long, value_name = "DIR")]
    pub(crate) sees_folder: Vec<PathBuf>,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
pub(crate) enum SeesChoice {
    /// None.
    Own,
    /// All sessions.
    All,
}

#[derive(Args)]
pub(crate) struct ServeArgs {
    /// The address to listen on. An address other than loopback needs at least one API key.
    #[arg(long, env = "TILLER_HOST", default_value = "127.0.0.1", global = true)]
    pub(crate) host: String,

    /// The port to listen on; 0 lets the system choose [default: 8080, or the next free one]
    #[arg(long, env = "TILLER_PORT", global = true)]
    pub(crate) port: Option<u16>,

    /// The folder for sessions, configuration and run files [default: the platform's data folder]
    #[arg(long, env = "TILLER_DATA_DIR", value_name = "DIR", global = true)]
    data_dir: Option<PathBuf>,

    /// Claude Code's folder with settings and transcripts [default: ~/.claude]
    #[arg(long, env = "CLAUDE_CONFIG_DIR", value_name = "DIR", global = true)]
    pub(crate) claude_home: Option<PathBuf>,

    /// The Claude Code executable [default: searched on PATH and in the usual places]
    #[arg(long, env = "TILLER_CLAUDE_BIN", value_name = "FILE", global = true)]
    pub(crate) claude_bin: Option<PathBuf>,

    /// The agent to run.
    #[arg(long, env = "TILLER_BACKEND", default_value = "auto", global = true)]
    pub(crate) backend: BackendChoice,

    /// How to connect to Claude Code: `auto` is stdio; old releases can also connect with `sdk-url`.
    #[arg(long, env = "TILLER_TRANSPORT", default_value = "auto", global = true)]
    pub(crate) transport: TransportChoice,

    /// A folder beneath which agents may work; can be repeated [default: the home folder]
    #[arg(long = "root", value_name = "DIR", global = true)]
    roots: Vec<PathBuf>,

    /// Open the browser, even if not started from a terminal.
    #[arg(long, overrides_with = "no_open", global = true)]
    open: bool,

    /// Do not open the browser.
    #[arg(long, global = true)]
    no_open: bool,
}

#[derive(Args)]
pub(crate) struct RunArgs {
    /// The task for the agent; `-` reads it from standard input.
    pub(crate) prompt: String,

    /// What to print: the answer as it is written, one JSON object at the end, or every event as a line of JSON.
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    pub(crate) output: Output,

    /// The agent's working directory [default: the current folder]
    #[arg(long, value_name = "DIR")]
    pub(crate) cwd: Option<PathBuf>,

    /// Continue a session instead of starting a new one.
    #[arg(long, value_name = "ID", conflicts_with_all = ["cwd", "model", "permission_mode", "allowed_tools", "max_turns", "max_budget_usd"])]
    pub(crate) session: Option<String>,

    #[arg(long)]
    pub(crate) model: Option<String>,

    /// default, acceptEdits, plan, auto or bypassPermissions
    #[arg(long, value_name = "MODE", value_parser = ["default", "acceptEdits", "plan", "auto", "bypassPermissions"])]
    pub(crate) permission_mode: Option<String>,

    /// Tools and rules that need no permission, separated by commas: `Read,Bash(git *)`
    #[arg(long, value_name = "TOOLS")]
    pub(crate) allowed_tools: Option<String>,

    /// What to do when the agent asks for permission [default: ask at a terminal, otherwise deny]
    #[arg(long, value_name = "HOW")]
    pub(crate) approve: Option<Approve>,

    /// The maximum number of model calls.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) max_turns: Option<u32>,

    /// The maximum cost.
    #[arg(long, value_name = "USD", value_parser = above_zero, allow_negative_numbers = true)]
    pub(crate) max_budget_usd: Option<f64>,

    /// Stop the task after this many seconds, with exit code 124.
    #[arg(long, value_name = "SECONDS", value_parser = above_zero, allow_negative_numbers = true)]
    pub(crate) timeout: Option<f64>,
}

fn above_zero(text: &str) -> Result<f64, String> {
    let number = text.parse().ok().filter(|number: &f64| number.is_finite());
    number
        .filter(|number| *number > 0.0)
        .ok_or_else(|| "the value must be a number above 0".to_owned())
}

#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
pub(crate) enum Output {
    /// The agent's text as it is written; its actions go to standard error.
    Text,
    /// One object at the end.
    Json,
    /// Every event of the event API, one per line.
    StreamJson,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
pub(crate) enum Approve {
    /// Ask at the terminal.
    Ask,
    /// Deny everything that needs permission.
    Deny,
    /// Allow everything except questions and plans.
    All,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
pub(crate) enum TransportChoice {
    /// Stdio, which every version supports.
    Auto,
    /// Standard input and output.
    Stdio,
    /// Claude Code connects to this server; 2.1.113 and older do.
    SdkUrl,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
pub(crate) enum BackendChoice {
    /// Claude Code if it is installed, otherwise the demo agent.
    Auto,
    /// Claude Code.
    Claude,
    /// The built-in demo agent.
    Demo,
}

impl ServeArgs {
    pub(crate) fn data_dir(&self) -> anyhow::Result<DataDir> {
        DataDir::locate(self.data_dir.clone())
    }

    /// The folders of `--root` only.
    pub(crate) fn roots_given(&self) -> &[PathBuf] {
        &self.roots
    }

    pub(crate) fn roots(&self) -> Vec<PathBuf> {
        if !self.roots.is_empty() {
            return self.roots.clone();
        }
        // Not clap's own `env`, which would take the whole list for one path.
        if let Some(roots) = std::env::var_os("TILLER_ROOTS").filter(|roots| !roots.is_empty()) {
            return std::env::split_paths(&roots).collect();
        }
        std::env::home_dir().into_iter().collect()
    }

    pub(crate) fn opens_browser(&self) -> bool {
        use std::io::IsTerminal;
        self.open || (!self.no_open && std::io::stdout().is_terminal())
    }
}
