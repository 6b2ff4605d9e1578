//! The command line.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

use crate::data_dir::DataDir;

/// Steer many coding agents from one place.
#[derive(Parser)]
#[command(version, about, after_help = "Without a command, `serve` is meant.")]
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
    /// Give an agent one task and wait for its end; for scripts and CI.
    Run(RunArgs),
    /// List the sessions.
    Sessions {
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Follow a session in the terminal, and take part: type to say something, Ctrl-C stops the turn, Ctrl-D leaves.
    Attach {
        /// The session's id, or the beginning of it.
        session: String,
    },
    /// Look whether everything is in place, and say what to do where it is not.
    Doctor {
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Put a new server in the place of the running one, of a newer version if there is one; agents go on
    Restart,
    /// Print a new sign-in link for the running server.
    Link,
    /// Create, list or revoke the keys that programs use.
    #[command(subcommand)]
    Key(KeyCommand),
}

#[derive(Subcommand)]
pub(crate) enum KeyCommand {
    /// Create a key and print it, this once.
    Create(KeyArgs),
    /// List the keys.
    List,
    /// Make a key useless, and stop what was started with it, within five seconds.
    Revoke {
        /// Its name or its id.
        #[arg(value_name = "KEY")]
        key: String,
    },
}

/// With `--root`, the key's agents may work beneath these folders only.
#[derive(Args)]
pub(crate) struct KeyArgs {
    /// What the key is for.
    pub(crate) name: String,

    /// What it allows: read (look and watch), run (start, continue, stop, delete), approve (answer decisions, and grant
    /// modes, tools, rules and hooks).
    #[arg(long, default_value = "read,run,approve")]
    pub(crate) scope: String,

    /// Who answers when an agent asks for a tool, in sessions that the key starts without saying so: ask (the user) or
    /// auto (everything but questions and plans is allowed; needs the scope approve). Otherwise as in config.toml.
    #[arg(long, value_name = "ask|auto")]
    pub(crate) approval: Option<String>,

    /// A permission mode that it may choose; may be given several times [default: all]
    #[arg(long, value_name = "MODE", value_parser = ["default", "acceptEdits", "plan", "bypassPermissions"])]
    pub(crate) mode: Vec<String>,

    /// A tool or rule that it may grant; may be given several times [default: all]
    #[arg(long, value_name = "TOOL")]
    pub(crate) tool: Vec<String>,

    /// What each of its sessions may cost.
    #[arg(long, value_name = "USD", value_parser = above_zero, allow_negative_numbers = true)]
    pub(crate) budget_usd: Option<f64>,

    /// Its agents run in a sandbox, or not at all: they can write to their working directory, to Claude Code's own folder and
    /// to a /tmp of their own. The network is open.
    #[arg(long)]
    pub(crate) sandbox: bool,

    /// Which sessions it sees.
    #[arg(long, value_name = "WHICH", default_value = "own")]
    pub(crate) sees: SeesChoice,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
pub(crate) enum SeesChoice {
    /// Those that were started with it.
    Own,
    /// Those of everyone.
    All,
}

#[derive(Args)]
pub(crate) struct ServeArgs {
    /// The address to listen on. Any other than loopback needs at least one API key.
    #[arg(long, env = "TILLER_HOST", default_value = "127.0.0.1", global = true)]
    pub(crate) host: String,

    /// The port to listen on; 0 lets the system choose [default: 8080, or the next free one]
    #[arg(long, env = "TILLER_PORT", global = true)]
    pub(crate) port: Option<u16>,

    /// Where sessions, configuration and run files are kept [default: the platform's data folder]
    #[arg(long, env = "TILLER_DATA_DIR", value_name = "DIR", global = true)]
    data_dir: Option<PathBuf>,

    /// Where Claude Code keeps its settings and transcripts [default: ~/.claude]
    #[arg(long, env = "CLAUDE_CONFIG_DIR", value_name = "DIR", global = true)]
    pub(crate) claude_home: Option<PathBuf>,

    /// The Claude Code executable [default: looked for on PATH and where people install it]
    #[arg(long, env = "TILLER_CLAUDE_BIN", value_name = "FILE", global = true)]
    pub(crate) claude_bin: Option<PathBuf>,

    /// Which agent to run.
    #[arg(long, env = "TILLER_BACKEND", default_value = "auto", global = true)]
    pub(crate) backend: BackendChoice,

    /// How to speak with Claude Code: `auto` is stdio; old releases also connect to us with `sdk-url`.
    #[arg(long, env = "TILLER_TRANSPORT", default_value = "auto", global = true)]
    pub(crate) transport: TransportChoice,

    /// A folder beneath which agents may work; may be given several times [default: the home folder]
    #[arg(long = "root", value_name = "DIR", global = true)]
    roots: Vec<PathBuf>,

    /// Open the browser, also when not started from a terminal.
    #[arg(long, overrides_with = "no_open", global = true)]
    open: bool,

    /// Do not open the browser.
    #[arg(long, global = true)]
    no_open: bool,
}

#[derive(Args)]
pub(crate) struct RunArgs {
    /// What the agent should do; `-` reads it from standard input.
    pub(crate) prompt: String,

    /// What to print: the answer as it comes, one JSON object at the end, or every event as a line of JSON.
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    pub(crate) output: Output,

    /// Where the agent works [default: the current folder]
    #[arg(long, value_name = "DIR")]
    pub(crate) cwd: Option<PathBuf>,

    /// Go on with a session of Tiller's instead of beginning one.
    #[arg(long, value_name = "ID", conflicts_with_all = ["cwd", "model", "permission_mode", "allowed_tools", "max_turns", "max_budget_usd"])]
    pub(crate) session: Option<String>,

    #[arg(long)]
    pub(crate) model: Option<String>,

    /// default, acceptEdits, plan or bypassPermissions
    #[arg(long, value_name = "MODE", value_parser = ["default", "acceptEdits", "plan", "bypassPermissions"])]
    pub(crate) permission_mode: Option<String>,

    /// Tools and rules that run without asking, separated by commas: `Read,Bash(git *)`
    #[arg(long, value_name = "TOOLS")]
    pub(crate) allowed_tools: Option<String>,

    /// What to do when the agent asks [default: ask at a terminal, else deny]
    #[arg(long, value_name = "HOW")]
    pub(crate) approve: Option<Approve>,

    /// How often the model may be called.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) max_turns: Option<u32>,

    /// What it may cost.
    #[arg(long, value_name = "USD", value_parser = above_zero, allow_negative_numbers = true)]
    pub(crate) max_budget_usd: Option<f64>,

    /// Stop the task after so many seconds; the exit code is 124 then.
    #[arg(long, value_name = "SECONDS", value_parser = above_zero, allow_negative_numbers = true)]
    pub(crate) timeout: Option<f64>,
}

fn above_zero(text: &str) -> Result<f64, String> {
    let number = text.parse().ok().filter(|number: &f64| number.is_finite());
    number
        .filter(|number| *number > 0.0)
        .ok_or_else(|| "it takes a number above 0".to_owned())
}

#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
pub(crate) enum Output {
    /// The agent's words as they come; what it does goes to standard error.
    Text,
    /// One object when it is over.
    Json,
    /// Every event of the event API, a line each.
    StreamJson,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
pub(crate) enum Approve {
    /// Ask at the terminal.
    Ask,
    /// Refuse what would need someone's consent.
    Deny,
    /// Allow everything but questions and plans.
    All,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
pub(crate) enum TransportChoice {
    /// Stdio, which every version takes.
    Auto,
    /// Standard input and output.
    Stdio,
    /// Claude Code connects to this server; 2.1.113 and older do.
    SdkUrl,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
pub(crate) enum BackendChoice {
    /// Claude Code where it is installed, else the demo agent.
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

    /// The folders of `--root`, and no others.
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
