//! `tiller serve`: everything put together, and its end.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use anyhow::{Context, bail};
use tiller_core::credentials::{CredentialStore, SecretHash};
use tiller_core::{PathPolicy, Sessions};
use tiller_server::{App, HistoryHandle, HostPolicy};
use tokio::net::TcpListener;

use crate::assets::EmbeddedAssets;
use crate::cli::ServeArgs;
use crate::config::Config;
use crate::data_dir::RunningServer;
use crate::{backend, link};

const DEFAULT_PORT: u16 = 8080;

/// How many ports after the default one are tried when it is taken.
const PORTS_TRIED: u16 = 100;

pub(crate) async fn run(args: ServeArgs) -> anyhow::Result<()> {
    start_logging();
    // First of all: from the ready line on, and before, whoever asks us to end is heard.
    let mut ending = Ending::listen()?;
    let data_dir = args.data_dir()?;
    let lock = data_dir.lock()?;
    let config = Config::read(&data_dir)?;
    let store = data_dir.open_store()?;
    let environment_key = std::env::var("TILLER_API_KEY")
        .ok()
        .filter(|key| !key.is_empty())
        .map(|key| SecretHash::of(&key));

    let address = resolve(&args.host).await?;
    let has_key = environment_key.is_some() || !store.keys().await?.is_empty();
    if !address.is_loopback() && !has_key {
        bail!(
            "{address} can be reached from other machines, so at least one API key is needed: \
             make one with `tiller key create NAME`, or set TILLER_API_KEY."
        );
    }

    let home = std::env::home_dir().context("there is no home folder: set HOME")?;
    let start = std::env::current_dir().unwrap_or_else(|_| home.clone());
    let paths = PathPolicy::new(&home, &args.roots(), &start, data_dir.path())
        .ok()
        .context("none of the roots exists: name a folder with --root")?;
    let backend = backend::choose(args.backend, args.claude_bin.clone(), args.claude_home.clone())?;
    backend.detect_version();

    let listener = listen(address, args.port).await?;
    let bound = listener.local_addr()?;
    let sessions = Sessions::open(Arc::new(store.clone()), Arc::new(backend), paths).await?;
    tracing::info!("{}", sessions.backend().reason);
    let claude_home = args.claude_home.clone().unwrap_or_else(|| home.join(".claude"));
    let history = HistoryHandle::start(claude_home, data_dir.path().join("history"))?;
    let app = App::new(
        sessions.clone(),
        history,
        Arc::new(store.clone()),
        environment_key,
        HostPolicy::new(bound, &config.allowed_hosts),
        Arc::new(EmbeddedAssets),
    );

    let url = format!("http://{bound}");
    lock.announce(&RunningServer {
        pid: std::process::id(),
        url: url.clone(),
    })?;
    let link = link::create(&store, &url).await?;
    println!("tiller is ready: {link}");
    if args.opens_browser()
        && let Err(error) = open::that_detached(&link)
    {
        tracing::info!(%error, "can't open a browser; open the link by hand");
    }

    tokio::select! {
        outcome = tiller_server::serve(listener, app) => outcome.context("the server failed")?,
        () = ending.asked() => {}
    }
    tracing::info!("stopping; agents are ended");
    tokio::select! {
        () = sessions.close() => {}
        // Asked twice: someone is in a hurry.
        () = ending.asked() => {}
    }
    Ok(())
}

fn start_logging() {
    use std::io::IsTerminal;
    use tracing_subscriber::EnvFilter;
    let filter = EnvFilter::try_from_env("TILLER_LOG").unwrap_or_else(|_| EnvFilter::new("info"));
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

/// Hears Ctrl-C, and SIGTERM from a service manager.
#[cfg(unix)]
struct Ending {
    interrupt: tokio::signal::unix::Signal,
    terminate: tokio::signal::unix::Signal,
}

#[cfg(unix)]
impl Ending {
    fn listen() -> anyhow::Result<Self> {
        use tokio::signal::unix::{SignalKind, signal};
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
        })
    }

    async fn asked(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }
}

#[cfg(windows)]
struct Ending {
    interrupt: tokio::signal::windows::CtrlC,
}

#[cfg(windows)]
impl Ending {
    fn listen() -> anyhow::Result<Self> {
        Ok(Self {
            interrupt: tokio::signal::windows::ctrl_c()?,
        })
    }

    async fn asked(&mut self) {
        self.interrupt.recv().await;
    }
}
