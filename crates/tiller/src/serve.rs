//! `tiller serve`: everything put together, and its end.

use std::io::Write as _;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, bail};
use tiller_backend_claude::ClaudeBackend;
use tiller_core::backend::Backends;
use tiller_core::credentials::{CredentialStore, SecretHash};
use tiller_core::{PathPolicy, Sessions, Titles};
use tiller_server::{Access, App, HistoryHandle, HostPolicy};
use tiller_store::SqliteStore;
use tokio::net::TcpListener;

use crate::assets::EmbeddedAssets;
use crate::cli::ServeArgs;
use crate::config::{self, Config, OnStop};
use crate::data_dir::{DataDir, RunningServer, ServerLock};
use crate::{backend, link};

pub(crate) const DEFAULT_PORT: u16 = 8080;

/// How many ports after the default one are tried when it is taken.
const PORTS_TRIED: u16 = 100;

pub(crate) async fn run(args: ServeArgs) -> anyhow::Result<()> {
    start_logging("info");
    // First of all: from the ready line on, and before, whoever asks us to end is heard.
    let mut ending = Ending::listen()?;
    let data_dir = args.data_dir()?;
    let lock = data_dir.lock().await?;
    let address = resolve(&args.host).await?;
    let service = Service::open(&args, &data_dir, lock, address, args.port).await?;
    let link = link::to_new_server(&service.store, service.address.link_url()).await;
    // Whoever started us may not listen any more.
    writeln!(std::io::stdout(), "tiller is ready: {link}").ok();
    if args.opens_browser()
        && let Err(error) = open_browser(&link)
    {
        tracing::info!(%error, "can't open a browser; open the link by hand");
    }
    // The lock is kept until the agents are gone: no other server may use the folder before.
    let Service {
        sessions,
        app,
        listener,
        lock,
        config,
        store,
        ..
    } = service;
    let wish = tokio::select! {
        outcome = tiller_server::serve(listener, app) => return outcome.context("the server failed"),
        wish = ending.asked() => wish,
    };
    let keep = config.on_stop == OnStop::Keep || wish == Wish::Restart;
    if keep {
        tracing::info!("stopping; agents go on and wait for the next server");
        sessions.leave().await;
        store.settle().await;
        drop(lock);
        if wish == Wish::Restart {
            return Err(restart()).context("can't start again");
        }
        // Not taken apart: what lets go of an agent ends it.
        std::process::exit(0);
    }
    tracing::info!("stopping; agents are ended");
    tokio::select! {
        () = sessions.close() => {}
        // Asked twice: someone is in a hurry.
        _ = ending.asked() => {}
    }
    store.settle().await;
    Ok(())
}

/// A server that is ready to serve.
pub(crate) struct Service {
    pub(crate) sessions: Sessions,
    pub(crate) address: RunningServer,
    pub(crate) app: App,
    pub(crate) listener: TcpListener,
    pub(crate) lock: ServerLock,
    config: Config,
    store: SqliteStore,
}

impl Service {
    /// Everything put together, listening, and announced to the program's other commands.
    pub(crate) async fn open(
        args: &ServeArgs,
        data_dir: &DataDir,
        mut lock: ServerLock,
        address: IpAddr,
        port: Option<u16>,
    ) -> anyhow::Result<Self> {
        // Every agent and every client has some.
        if let Err(error) = tiller_agent::raise_open_files() {
            tracing::info!(%error, "the limit of open files stays as it is");
        }
        let config = Config::read(data_dir)?;
        let store = data_dir.open_store()?;
        if let Err(error) = store.remove_remains().await {
            tracing::warn!(%error, "what an earlier server was about to delete still takes room");
        }
        let environment_key = std::env::var("TILLER_API_KEY")
            .ok()
            .filter(|key| !key.is_empty())
            .map(|key| SecretHash::of(&key));
        let has_key = environment_key.is_some() || !store.keys().await?.is_empty();
        if !address.is_loopback() && !has_key {
            bail!(
                "{address} can be reached from other machines, so at least one API key is needed: \
                 make one with `tiller key create NAME`, or set TILLER_API_KEY."
            );
        }

        let paths = paths(args, data_dir)?;
        let claude = (args.claude_bin.clone(), args.claude_home.clone());
        let found = backend::choose(args.backend, args.transport, claude.0, claude.1).await?;
        found.default.detect_version();
        let keeping = backend::keeping(data_dir, config.agent_grace()?);
        let hook_time = Duration::from_secs(config.hook_timeout_s);
        let prepared = |backend: ClaudeBackend| backend.kept(keeping.clone()).waiting_for_hooks(hook_time);
        // All share one folder of runs, so one looks after what an earlier server has left there.
        let mut backends = Backends::new(Arc::new(prepared(found.default).sweeping()));
        for other in found.others {
            backends = backends.with(Arc::new(prepared(other)));
        }

        let listener = listen(address, port).await?;
        let bound = listener.local_addr()?;
        let titles = match config.titles {
            config::Titles::Model => Titles::Model,
            config::Titles::Prompt => Titles::Prompt,
        };
        let sessions = Sessions::open(Arc::new(store.clone()), backends, paths, titles).await?;
        tracing::info!("{}", sessions.backend().reason);
        if let Some(connections) = sessions.connections() {
            // On this machine, whatever address others use.
            let host = if bound.ip().is_unspecified() {
                "127.0.0.1".to_owned()
            } else {
                SocketAddr::new(bound.ip(), 0)
                    .to_string()
                    .trim_end_matches(":0")
                    .to_owned()
            };
            connections.serve_at(format!("ws://{host}:{}", bound.port()));
        }
        let (tidied, retention) = (sessions.clone(), config.retention());
        let (rested, rest) = (sessions.clone(), config.rest());
        tokio::spawn(async move { rested.rest(rest).await });
        tokio::spawn(async move { tidied.upkeep(retention).await });
        tokio::spawn(crate::memory::look_after());
        let history = HistoryHandle::start(
            claude_home(args)?,
            data_dir.path().join("history"),
            data_dir.path().join("vault"),
        )?;
        let openable = link::openable(bound);
        let mut hosts = config.allowed_hosts.clone();
        hosts.extend(openable.map(|address| address.to_string()));
        let access = Access {
            hosts: HostPolicy::new(bound, &hosts),
            proxies: config.trusted_proxies()?,
            language: config.language(),
            task_starts_per_minute: config.task_starts_per_minute,
            instance: store.instance().await?,
            approval: config.approval(),
        };
        let app = App::new(
            sessions.clone(),
            history,
            Arc::new(store.clone()),
            environment_key,
            access,
            Arc::new(EmbeddedAssets),
        );
        let address = RunningServer {
            pid: std::process::id(),
            url: format!("http://{bound}"),
            openable: openable.map(|address| format!("http://{address}")),
        };
        lock.announce(&address);
        Ok(Self {
            sessions,
            address,
            app,
            listener,
            lock,
            config,
            store,
        })
    }
}

/// Where agents may work.
pub(crate) fn paths(args: &ServeArgs, data_dir: &DataDir) -> anyhow::Result<PathPolicy> {
    let home = home()?;
    let start = std::env::current_dir().unwrap_or_else(|_| home.clone());
    PathPolicy::new(&home, &args.roots(), &start, data_dir.path())
        .ok()
        .context("none of the roots exists: name a folder with --root")
}

/// Where Claude Code keeps its settings and transcripts.
pub(crate) fn claude_home(args: &ServeArgs) -> anyhow::Result<PathBuf> {
    match &args.claude_home {
        Some(folder) => Ok(folder.clone()),
        None => Ok(home()?.join(".claude")),
    }
}

fn home() -> anyhow::Result<PathBuf> {
    std::env::home_dir().context("there is no home folder: set HOME")
}

/// `level` unless `TILLER_LOG` says otherwise.
pub(crate) fn start_logging(level: &str) {
    use std::io::IsTerminal;
    use tracing_subscriber::EnvFilter;
    let filter = EnvFilter::try_from_env("TILLER_LOG").unwrap_or_else(|_| EnvFilter::new(level));
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal())
        .with_target(false)
        .init();
}

async fn resolve(host: &str) -> anyhow::Result<IpAddr> {
    let name = host.trim_start_matches('[').trim_end_matches(']');
    let mut addresses = tokio::net::lookup_host((name, 0))
        .await
        .with_context(|| format!("'{host}' is no address of this machine"))?;
    Ok(addresses
        .next()
        .with_context(|| format!("'{host}' is no address of this machine"))?
        .ip())
}

async fn listen(address: IpAddr, port: Option<u16>) -> anyhow::Result<TcpListener> {
    if let Some(port) = port {
        let address = SocketAddr::new(address, port);
        return TcpListener::bind(address).await.with_context(|| {
            format!("can't listen on {address}: choose another port with --port, or leave it out for the next free one")
        });
    }
    let mut last = None;
    for port in DEFAULT_PORT..DEFAULT_PORT + PORTS_TRIED {
        match TcpListener::bind(SocketAddr::new(address, port)).await {
            Ok(listener) => return Ok(listener),
            Err(error) if error.kind() == std::io::ErrorKind::AddrInUse => last = Some(error),
            Err(error) => return Err(error).with_context(|| format!("can't listen on {address}")),
        }
    }
    Err(last.map_or_else(|| anyhow::anyhow!("no port was tried"), anyhow::Error::from)).with_context(|| {
        format!(
            "ports {DEFAULT_PORT} to {} are all taken: choose one with --port",
            DEFAULT_PORT + PORTS_TRIED - 1
        )
    })
}

/// With the limit of open files that we were given, which the browser inherits.
fn open_browser(link: &str) -> std::io::Result<()> {
    tiller_agent::restore_open_files()?;
    let opened = open::that_detached(link);
    tiller_agent::raise_open_files()?;
    opened
}

/// Becomes a new server, with the same command line, which may be of a newer version by now. Comes back only if that
/// can't be done.
#[cfg(unix)]
fn restart() -> anyhow::Error {
    use std::os::unix::process::CommandExt;
    let mut arguments = std::env::args_os();
    let Some(name) = arguments.next() else {
        return anyhow::anyhow!("this process has no name");
    };
    if let Err(error) = tiller_agent::restore_open_files() {
        tracing::debug!(%error, "the limit of open files stays as it is");
    }
    // By its name, not as the file that runs: that may have been replaced.
    let program = match std::env::current_exe() {
        Ok(path) if path.exists() => path,
        _ => name.into(),
    };
    std::process::Command::new(program).args(arguments).exec().into()
}

#[cfg(not(unix))]
fn restart() -> anyhow::Error {
    anyhow::anyhow!("this system can't do that: stop the server and start it again")
}

/// What someone outside wants of the server.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Wish {
    Stop,
    Restart,
}

/// Hears Ctrl-C, SIGTERM from a service manager, and `tiller restart`.
#[cfg(unix)]
pub(crate) struct Ending {
    interrupt: tokio::signal::unix::Signal,
    terminate: tokio::signal::unix::Signal,
    restart: tokio::signal::unix::Signal,
}

#[cfg(unix)]
impl Ending {
    pub(crate) fn listen() -> anyhow::Result<Self> {
        use tokio::signal::unix::{SignalKind, signal};
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            restart: signal(SignalKind::user_defined2())?,
        })
    }

    pub(crate) async fn asked(&mut self) -> Wish {
        tokio::select! {
            _ = self.interrupt.recv() => Wish::Stop,
            _ = self.terminate.recv() => Wish::Stop,
            _ = self.restart.recv() => Wish::Restart,
        }
    }
}

#[cfg(windows)]
pub(crate) struct Ending {
    interrupt: tokio::signal::windows::CtrlC,
}

#[cfg(windows)]
impl Ending {
    pub(crate) fn listen() -> anyhow::Result<Self> {
        Ok(Self {
            interrupt: tokio::signal::windows::ctrl_c()?,
        })
    }

    pub(crate) async fn asked(&mut self) -> Wish {
        self.interrupt.recv().await;
        Wish::Stop
    }
}
