//! `tiller serve`: assembles everything, serves, and shuts down.

use std::io::Write as _;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, bail};
use tiller_backend_claude::ClaudeBackend;
use tiller_core::backend::Backends;
use tiller_core::credentials::CredentialStore;
use tiller_core::{PathPolicy, Sessions, TitlePolicy};
use tiller_process::{Shield, ShieldMode};
use tiller_server::{Access, App, HistoryHandle, HostPolicy};
use tiller_store::SqliteStore;
use tokio::net::TcpListener;

use crate::assets::EmbeddedAssets;
use crate::cli::ServeArgs;
use crate::config::{self, Config, OnStop};
use crate::data_dir::{DataDir, RunningServer, ServerLock};
use crate::{backend, insider, link, log};

pub(crate) const DEFAULT_PORT: u16 = 8080;

/// How long a browser may take to start.
const OPENER_LIFETIME: Duration = Duration::from_mins(1);

/// How long the background check of the shield waits after the start.
const SHIELD_CHECK_AFTER: Duration = Duration::from_secs(1);

/// How many random ports are tried until one is free in both address families.
const CHOICES_TRIED: u32 = 20;

/// How many ports after the default one are tried when it is taken.
const PORTS_TRIED: u16 = 100;

pub(crate) async fn run(args: ServeArgs) -> anyhow::Result<()> {
    let data_dir = args.data_dir()?;
    log::start("info", Config::read(&data_dir)?.log_format()?);
    insider::close_memory();
    // First of all: signals are handled from before the ready line on.
    let mut ending = Ending::listen()?;
    let lock = data_dir.lock().await?;
    let address = resolve(&args.host).await?;
    let service = Service::open(&args, &data_dir, lock, address, args.port).await?;
    let link = link::to_new_server(&service.store, service.address.link_url()).await;
    // Nobody may be reading standard output any more.
    writeln!(std::io::stdout(), "tiller is ready: {link}").ok();
    if args.opens_browser()
        && let Err(error) = open_browser(&data_dir, &link)
    {
        tracing::info!(%error, "can't open a browser; open the link by hand");
    }
    // The lock is held until the agents have ended: no other server may use the folder before.
    let Service {
        sessions,
        app,
        listeners,
        lock,
        config,
        store,
        ..
    } = service;
    let wish = tokio::select! {
        outcome = tiller_server::serve(listeners, app) => return outcome.context("the server failed"),
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
        // Not dropped: dropping an agent's channels ends the agent.
        std::process::exit(0);
    }
    tracing::info!("stopping; agents are ended");
    tokio::select! {
        () = sessions.close() => {}
        // The second signal: exit at once.
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
    pub(crate) listeners: Vec<TcpListener>,
    pub(crate) lock: ServerLock,
    config: Config,
    store: SqliteStore,
}

impl Service {
    /// Assembles everything, listens, and announces the server to the program's other commands.
    pub(crate) async fn open(
        args: &ServeArgs,
        data_dir: &DataDir,
        mut lock: ServerLock,
        address: IpAddr,
        port: Option<u16>,
    ) -> anyhow::Result<Self> {
        // Every agent and every client needs some.
        if let Err(error) = tiller_agent::process::raise_open_files() {
            tracing::info!(%error, "can't raise the limit of open files");
        }
        let config = Config::read(data_dir)?;
        let store = data_dir.open_store()?;
        if let Err(error) = store.remove_remains().await {
            tracing::warn!(%error, "can't finish the deletions of an earlier server");
        }
        let environment_key = insider::environment_key();
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
        let shield = backend::shield(config.shield(), data_dir, &claude_home(args)?);
        look_at(&shield)?;
        let keeping = backend::keeping(
            data_dir,
            config.agent_grace()?,
            config.decision_grace(),
            shield.clone(),
        );
        let hook_time = Duration::from_secs(config.hook_timeout_s);
        let sandbox = config.sandbox()?;
        let prepared = |backend: ClaudeBackend| {
            let backend = backend.kept(keeping.clone()).waiting_for_hooks(hook_time);
            backend.sandboxed_with(sandbox.clone())
        };
        // All share one folder of runs, so one looks after what an earlier server has left there.
        let mut backends = Backends::new(Arc::new(prepared(found.default).sweeping()))
            .shielded_by(shield)
            .sandboxing_keys(config.key_sandbox()?);
        for other in found.others {
            backends = backends.with(Arc::new(prepared(other)));
        }
        for (name, command) in config.acp_agents()? {
            backends = backends.with(Arc::new(backend::acp(name, &command, keeping.clone(), &sandbox)));
        }

        let Listening {
            listeners,
            bound,
            localhost_is_ours,
        } = listen(address, port).await?;
        let titles = match config.titles {
            config::Titles::Model => TitlePolicy::Model,
            config::Titles::Prompt => TitlePolicy::Prompt,
        };
        let sessions = Sessions::open(Arc::new(store.clone()), backends, paths, titles).await?;
        tracing::info!("{}", sessions.backend().reason);
        if let Some(connections) = sessions.connections() {
            // The local address, whatever address others use.
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
        let (idle, policy) = (sessions.clone(), config.hibernation());
        tokio::spawn(async move { idle.hibernate_idle(policy).await });
        tokio::spawn(async move { tidied.upkeep(retention).await });
        tokio::spawn(crate::memory::release_periodically());
        let history = HistoryHandle::start(
            claude_home(args)?,
            data_dir.path().join("history"),
            data_dir.path().join("vault"),
        )?;
        let addresses: Vec<SocketAddr> = listeners
            .iter()
            .map(TcpListener::local_addr)
            .collect::<Result<_, _>>()?;
        let openable = link::openable(bound);
        let mut hosts = config.allowed_hosts.clone();
        hosts.extend(openable.map(|address| address.to_string()));
        let access = Access {
            hosts: HostPolicy::new(&addresses, localhost_is_ours, &hosts),
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
            listeners,
            lock,
            config,
            store,
        })
    }
}

/// Probes whether agents can be shielded: in the background, unless the shield is required.
fn look_at(shield: &Shield) -> anyhow::Result<()> {
    if shield.mode() == ShieldMode::Require {
        let reason = shield.state().why_not();
        anyhow::ensure!(
            reason.is_none(),
            "`shield = \"require\"` in config.toml: {}",
            reason.unwrap_or_default()
        );
        return Ok(());
    }
    let shield = shield.clone();
    tokio::spawn(async move {
        // After the first page: the check starts processes. A session that starts an agent earlier makes the check itself.
        tokio::time::sleep(SHIELD_CHECK_AFTER).await;
        let checked = tokio::task::spawn_blocking(move || {
            if let Some(reason) = shield.state().why_not() {
                tracing::warn!("Agents are not shielded. {reason}");
            }
        });
        if let Err(error) = checked.await {
            tracing::error!(%error, "the check of the shield failed");
        }
    });
    Ok(())
}

/// The folders in which agents may work.
pub(crate) fn paths(args: &ServeArgs, data_dir: &DataDir) -> anyhow::Result<PathPolicy> {
    let home = home()?;
    let start = std::env::current_dir().unwrap_or_else(|_| home.clone());
    PathPolicy::new(&home, &args.roots(), &start, data_dir.path())
        .ok()
        .context("none of the roots exists; choose a folder with --root")
}

/// Claude Code's folder with settings and transcripts.
pub(crate) fn claude_home(args: &ServeArgs) -> anyhow::Result<PathBuf> {
    match &args.claude_home {
        Some(folder) => Ok(folder.clone()),
        None => Ok(home()?.join(".claude")),
    }
}

fn home() -> anyhow::Result<PathBuf> {
    std::env::home_dir().context("there is no home folder. Set HOME")
}

async fn resolve(host: &str) -> anyhow::Result<IpAddr> {
    let name = host.trim_start_matches('[').trim_end_matches(']');
    let mut addresses = tokio::net::lookup_host((name, 0))
        .await
        .with_context(|| format!("'{host}' is not an address of this machine"))?;
    Ok(addresses
        .next()
        .with_context(|| format!("'{host}' is not an address of this machine"))?
        .ip())
}

/// Where the server listens.
struct Listening {
    listeners: Vec<TcpListener>,
    /// The requested address, with its port.
    bound: SocketAddr,
    /// Whether `localhost` leads here in both address families.
    localhost_is_ours: bool,
}

async fn listen(address: IpAddr, port: Option<u16>) -> anyhow::Result<Listening> {
    match port {
        Some(0) => {
            let mut last = None;
            for _ in 0..CHOICES_TRIED {
                let listening = listen_at(SocketAddr::new(address, 0)).await;
                let listening = listening.with_context(|| format!("can't listen on {address}"))?;
                if listening.localhost_is_ours || !address.is_loopback() {
                    return Ok(listening);
                }
                last = Some(listening);
            }
            last.context("no port was tried")
        }
        Some(port) => {
            let address = SocketAddr::new(address, port);
            let listening = listen_at(address).await.with_context(|| {
                format!("can't listen on {address} (choose another port with --port, or omit it for the next free one)")
            })?;
            if address.ip().is_loopback() && !listening.localhost_is_ours {
                tracing::warn!(
                    "Another program listens on port {port} of this machine's other loopback address: \
                     http://localhost:{port} may lead there. Use http://{address}, or another port."
                );
            }
            Ok(listening)
        }
        None => next_free(address).await,
    }
}

/// The first free port from the default one on, in both address families if `localhost` is meant.
async fn next_free(address: IpAddr) -> anyhow::Result<Listening> {
    for port in DEFAULT_PORT..DEFAULT_PORT + PORTS_TRIED {
        match listen_at(SocketAddr::new(address, port)).await {
            Ok(listening) if listening.localhost_is_ours || !address.is_loopback() => return Ok(listening),
            Ok(_) => {}
            Err(error) if error.kind() == std::io::ErrorKind::AddrInUse => {}
            Err(error) => return Err(error).with_context(|| format!("can't listen on {address}")),
        }
    }
    bail!(
        "ports {DEFAULT_PORT} to {} are all in use. Choose another one with --port",
        DEFAULT_PORT + PORTS_TRIED - 1
    )
}

/// Listens at an address and, if `localhost` stands for it, at the other such address, so that no other program is
/// mistaken for this one.
async fn listen_at(address: SocketAddr) -> std::io::Result<Listening> {
    let listener = TcpListener::bind(address).await?;
    let bound = listener.local_addr()?;
    let mut listeners = vec![listener];
    let (v4, v6): (IpAddr, IpAddr) = (Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into());
    let other = match bound.ip() {
        ip if ip == v4 || ip == IpAddr::from(Ipv4Addr::UNSPECIFIED) => Some(v6),
        ip if ip == v6 => Some(v4),
        // On all of IPv6, which usually includes IPv4: then this fails, and we already have it.
        ip if ip == IpAddr::from(Ipv6Addr::UNSPECIFIED) => Some(v4),
        _ => None,
    };
    let localhost_is_ours = match other {
        None => false,
        Some(other) => match TcpListener::bind(SocketAddr::new(other, bound.port())).await {
            Ok(listener) => {
                listeners.push(listener);
                true
            }
            Err(error) if error.kind() == std::io::ErrorKind::AddrInUse => {
                bound.ip().is_unspecified() && bound.is_ipv6()
            }
            // A machine without that address family: nobody else can listen there either.
            Err(_) => true,
        },
    };
    Ok(Listening {
        listeners,
        bound,
        localhost_is_ours,
    })
}

/// Opens the link with the original limit of open files, which the browser inherits. The opener gets a file that only
/// its user can read: everyone on the machine can read its command line.
fn open_browser(data_dir: &DataDir, link: &str) -> std::io::Result<()> {
    let page = data_dir.write_opener(link)?;
    tiller_agent::process::restore_open_files()?;
    let opened = open::that_detached(&page);
    tiller_agent::process::raise_open_files()?;
    tokio::spawn(async move {
        // The code in it has been used by then, or nobody needs it any more.
        tokio::time::sleep(OPENER_LIFETIME).await;
        if let Err(error) = tokio::fs::remove_file(&page).await {
            tracing::debug!(%error, "can't remove the page that opened the browser");
        }
    });
    opened
}

/// Replaces this process with a new server, with the same command line and possibly a newer version. Returns only on
/// failure.
#[cfg(unix)]
fn restart() -> anyhow::Error {
    use std::os::unix::process::CommandExt;
    let mut arguments = std::env::args_os();
    let Some(name) = arguments.next() else {
        return anyhow::anyhow!("this process has no name");
    };
    if let Err(error) = tiller_agent::process::restore_open_files() {
        tracing::debug!(%error, "can't restore the limit of open files");
    }
    // By its name, not by the running file, which may have been replaced.
    let program = match std::env::current_exe() {
        Ok(path) if path.exists() => path,
        _ => name.into(),
    };
    std::process::Command::new(program).args(arguments).exec().into()
}

#[cfg(not(unix))]
fn restart() -> anyhow::Error {
    anyhow::anyhow!("not supported on this system: stop the server and start it again")
}

/// A request to the server from outside.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Wish {
    Stop,
    Restart,
}

/// Receives Ctrl-C, SIGTERM from a service manager, and `tiller restart`.
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
