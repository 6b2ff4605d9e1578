//! `tiller restart`: replaces the running server without ending its agents.

use std::time::Duration;

use anyhow::{Context, bail};
use tiller_core::credentials::Secret;

use crate::config::Config;
use crate::data_dir::DataDir;
use crate::link;

/// How long a server may take to store everything and come back.
const PATIENCE: Duration = Duration::from_secs(30);

const LOOK_AGAIN: Duration = Duration::from_millis(50);

/// Returns when the new server is running.
pub(crate) async fn run(data_dir: &DataDir) -> anyhow::Result<()> {
    let server = data_dir
        .running()
        .context("no server is running with this data folder. Start one with `tiller`.")?;
    let code = prepare(data_dir)
        .await
        .context("not restarted; the server continues unchanged")?;
    let before = data_dir.announced_at();
    ask(server.pid)?;
    let deadline = tokio::time::Instant::now() + PATIENCE;
    loop {
        if data_dir.announced_at() > before
            && let Some(server) = data_dir.running()
        {
            println!("{}", link::with_code(server.link_url(), &code));
            return Ok(());
        }
        if tokio::time::Instant::now() > deadline {
            bail!("the server did not come back. Its agents wait for it; start it with `tiller`.");
        }
        tokio::time::sleep(LOOK_AGAIN).await;
    }
}

/// Finds problems of a new server while the old one still runs. Returns the code for the link to the new one.
async fn prepare(data_dir: &DataDir) -> anyhow::Result<Secret> {
    Config::read(data_dir)?;
    data_dir.check_room()?;
    link::create_code(&data_dir.open_store()?).await
}

#[cfg(unix)]
fn ask(pid: u32) -> anyhow::Result<()> {
    use rustix::process::{Pid, Signal, kill_process};
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
    let pid = pid.context("the server's process id is invalid")?;
    kill_process(pid, Signal::USR2).context("the server can't be reached")
}

#[cfg(not(unix))]
fn ask(_pid: u32) -> anyhow::Result<()> {
    bail!("not supported on this system: stop the server and start it again")
}
