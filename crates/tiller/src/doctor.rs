//! `tiller doctor`: checks the installation, and says how to fix problems.

use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::Path;
use std::process::ExitCode;

use serde::Serialize;
use tiller_agent::cli::{Executable, Finder};
use tiller_core::{ListedSession, SessionQuery, Store};
use tiller_process::{ShieldMode, ShieldState};

use crate::backend;
use crate::bundle;
use crate::cli::{BackendChoice, ServeArgs};
use crate::config::Config;
use crate::data_dir::DataDir;
use crate::serve::{self, DEFAULT_PORT};

#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
enum State {
    Ok,
    /// It works, but not in the usual way.
    Warning,
    Broken,
}

#[derive(Debug, Serialize)]
struct Finding {
    name: &'static str,
    state: State,
    detail: String,
    /// How to fix it.
    #[serde(skip_serializing_if = "Option::is_none")]
    advice: Option<String>,
}

impl Finding {
    fn ok(name: &'static str, detail: impl Into<String>) -> Self {
        Self {
            name,
            state: State::Ok,
            detail: detail.into(),
            advice: None,
        }
    }

    fn warning(name: &'static str, detail: impl Into<String>, advice: impl Into<String>) -> Self {
        Self {
            state: State::Warning,
            advice: Some(advice.into()),
            ..Self::ok(name, detail)
        }
    }

    fn broken(name: &'static str, detail: impl Into<String>, advice: impl Into<String>) -> Self {
        Self {
            state: State::Broken,
            ..Self::warning(name, detail, advice)
        }
    }
}

/// The exit code is 1 if something is broken.
pub(crate) async fn run(args: &ServeArgs, as_json: bool, bundle: Option<&Path>) -> anyhow::Result<ExitCode> {
    let mut findings = agent(args).await;
    let data_dir = args.data_dir()?;
    findings.push(roots(args, &data_dir));
    findings.push(configuration(&data_dir));
    findings.push(shield(args, &data_dir));
    findings.push(database(&data_dir).await);
    findings.push(port(args, &data_dir));
    let broken = findings.iter().any(|finding| finding.state == State::Broken);
    if let Some(path) = bundle {
        bundle::write(path, &data_dir, &findings).await?;
    }
    if as_json {
        println!("{:#}", serde_json::json!({ "ok": !broken, "findings": findings }));
    } else {
        for finding in &findings {
            let mark = match finding.state {
                State::Ok => "ok     ",
                State::Warning => "warning",
                State::Broken => "BROKEN ",
            };
            println!("{mark}  {:<11}  {}", finding.name, finding.detail);
            if let Some(advice) = &finding.advice {
                println!("{:22}→ {advice}", "");
            }
        }
        if let Some(path) = bundle {
            println!(
                "\nWritten to {}. Look through it before you send it to someone.",
                path.display()
            );
        }
    }
    Ok(if broken {
        ExitCode::FAILURE
    } else {
        ExitCode::SUCCESS
    })
}

/// Claude Code, its version, its transport, and whether it is logged in.
async fn agent(args: &ServeArgs) -> Vec<Finding> {
    let install = "Install it: npm install -g @anthropic-ai/claude-code";
    let finder = Finder::from_env();
    let found = match &args.claude_bin {
        Some(path) => finder.resolve(path),
        None => finder.find(),
    };
    let executable = match found {
        Ok(executable) => executable,
        Err(error) if args.claude_bin.is_some() => {
            return vec![Finding::broken(
                "claude",
                error.to_string(),
                "Correct --claude-bin (TILLER_CLAUDE_BIN), or remove it.",
            )];
        }
        Err(error) if args.backend == BackendChoice::Claude => {
            return vec![Finding::broken("claude", error.to_string(), install)];
        }
        Err(_) => {
            let detail = "Claude Code was not found; the demo agent runs instead.";
            return vec![Finding::warning("claude", detail, install)];
        }
    };
    let version = match executable.version().await {
        Ok(version) => version,
        Err(error) => {
            let detail = format!("{}: {error}", executable.path.display());
            return vec![Finding::broken(
                "claude",
                detail,
                "Install it again: npm install -g @anthropic-ai/claude-code",
            )];
        }
    };
    let claude = Finding::ok("claude", format!("{version} at {}", executable.path.display()));
    let takes = if version.capabilities().sdk_url {
        "this version also supports --sdk-url"
    } else {
        "this version supports only stdio"
    };
    let transport = Finding::ok("transport", format!("stdio; {takes}"));
    vec![claude, transport, login(args, &executable).await]
}

async fn login(args: &ServeArgs, executable: &Executable) -> Finding {
    match executable.login(args.claude_home.as_deref()).await {
        Ok(login) if login.logged_in => {
            let method = login.auth_method.unwrap_or_else(|| "unknown".to_owned());
            Finding::ok("login", format!("logged in ({method})"))
        }
        Ok(_) => Finding::broken(
            "login",
            "Claude Code is not logged in.",
            "Run `claude` once and log in, or set ANTHROPIC_API_KEY.",
        ),
        Err(unknown) => Finding::warning(
            "login",
            format!("unknown: {unknown}"),
            "Run `claude` in a terminal to see whether it is logged in.",
        ),
    }
}

fn roots(args: &ServeArgs, data_dir: &DataDir) -> Finding {
    let wanted = args.roots();
    match serve::paths(args, data_dir) {
        Ok(paths) => {
            let list: Vec<_> = paths
                .roots()
                .iter()
                .map(|root| root.display().to_string())
                .collect();
            let missing: Vec<_> = wanted.iter().filter(|root| !root.is_dir()).collect();
            match missing.first() {
                None => Finding::ok("roots", list.join(", ")),
                Some(root) => Finding::warning(
                    "roots",
                    format!(
                        "{} is not a folder; the others are used: {}",
                        root.display(),
                        list.join(", ")
                    ),
                    "Create the folder, or remove it from --root (TILLER_ROOTS).",
                ),
            }
        }
        Err(error) => Finding::broken(
            "roots",
            format!("{error:#}"),
            "Name a folder that exists with --root (TILLER_ROOTS).",
        ),
    }
}

/// Whether agents can be shielded.
fn shield(args: &ServeArgs, data_dir: &DataDir) -> Finding {
    let mode = Config::read(data_dir).map_or(ShieldMode::On, |config| config.shield());
    let claude_home = match serve::claude_home(args) {
        Ok(folder) => folder,
        Err(error) => return Finding::broken("shield", format!("{error:#}"), "Set HOME."),
    };
    let shield = backend::shield(mode, data_dir, &claude_home);
    match shield.state() {
        ShieldState::Namespaces => Finding::ok("shield", "agents run in their own namespaces"),
        ShieldState::Bubblewrap(path) => Finding::ok(
            "shield",
            format!("agents run in namespaces created by {}", path.display()),
        ),
        state @ (ShieldState::Off | ShieldState::Unavailable(_)) => {
            let detail = state.why_not().unwrap_or_default();
            let advice = "Until then an agent can read Tiller's data folder and see its processes.";
            if mode == ShieldMode::Require {
                Finding::broken(
                    "shield",
                    detail,
                    "config.toml requires the shield, so the server does not start.",
                )
            } else {
                Finding::warning("shield", detail, advice)
            }
        }
    }
}

fn configuration(data_dir: &DataDir) -> Finding {
    let file = data_dir.config_file();
    match Config::read(data_dir) {
        Ok(_) if file.exists() => Finding::ok("config", file.display().to_string()),
        Ok(_) => Finding::ok("config", format!("defaults ({} does not exist)", file.display())),
        Err(error) => Finding::broken(
            "config",
            format!("{error:#}"),
            format!("Correct {}, or remove it.", file.display()),
        ),
    }
}

async fn database(data_dir: &DataDir) -> Finding {
    if !data_dir.path().join("sessions.db").exists() {
        let folder = data_dir.path().display();
        return match writable(data_dir.path()) {
            Ok(()) => Finding::ok(
                "database",
                format!("none yet; the first start creates it in {folder}"),
            ),
            Err(error) => Finding::broken(
                "database",
                format!("{folder} can't be created or written: {error}"),
                "Fix its permissions, or choose another folder with --data-dir (TILLER_DATA_DIR).",
            ),
        };
    }
    let opened = match data_dir.open_store() {
        Ok(store) => store
            .list(SessionQuery::default())
            .await
            .map_err(anyhow::Error::from),
        Err(error) => Err(error),
    };
    match opened {
        Ok(sessions) => {
            let damaged = sessions.iter().filter_map(|session| match session {
                ListedSession::Damaged(damaged) => Some(damaged.id.to_string()),
                ListedSession::Readable { .. } => None,
            });
            let damaged: Vec<_> = damaged.collect();
            let found = format!("{} sessions in {}", sessions.len(), data_dir.path().display());
            if damaged.is_empty() {
                Finding::ok("database", found)
            } else {
                Finding::broken(
                    "database",
                    format!("{found}; some can't be read: {}", damaged.join(", ")),
                    "Delete them, or restore sessions.db from a backup. All other sessions work.",
                )
            }
        }
        Err(error) => Finding::broken(
            "database",
            format!("{error:#}"),
            "Restore sessions.db from a backup, or move it away to start afresh.",
        ),
    }
}

/// Whether the folder can be written or created.
fn writable(folder: &Path) -> std::io::Result<()> {
    let existing = folder.ancestors().find(|folder| folder.exists());
    tempfile::tempfile_in(existing.unwrap_or(folder)).map(drop)
}

fn port(args: &ServeArgs, data_dir: &DataDir) -> Finding {
    if let Some(server) = data_dir.running() {
        return Finding::ok(
            "server",
            format!("running at {} (process {})", server.url, server.pid),
        );
    }
    let is_free = |port: u16| TcpListener::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, port))).is_ok();
    match args.port {
        Some(port) if is_free(port) => Finding::ok("port", format!("{port} is free")),
        Some(port) => Finding::broken(
            "port",
            format!("{port} is used by another program"),
            "Choose another port with --port, or omit it for the next free one.",
        ),
        None if is_free(DEFAULT_PORT) => Finding::ok("port", format!("{DEFAULT_PORT} is free")),
        None => Finding::ok(
            "port",
            format!("{DEFAULT_PORT} is in use; the next free port will be used"),
        ),
    }
}
