//! Sign-in links.

use std::time::Duration;

use anyhow::Context;
use tiller_core::Timestamp;
use tiller_core::credentials::{CredentialStore, Secret};

use crate::data_dir::DataDir;

/// No command runs for longer.
const COMMAND_LIFETIME: Duration = Duration::from_hours(7 * 24);

/// Prints a new link for the server that runs with this data folder.
pub(crate) async fn run(data_dir: &DataDir) -> anyhow::Result<()> {
    let server = data_dir.running().context(
        "no server is running with this data folder. Start one with `tiller`, which prints a link too.",
    )?;
    let store = data_dir.open_store()?;
    println!("{}", create(&store, &server.url).await?);
    Ok(())
}

/// A link that signs one browser in, once.
pub(crate) async fn create(credentials: &impl CredentialStore, url: &str) -> anyhow::Result<String> {
    let code = Secret::generate("")?;
    let lifetime = i64::try_from(tiller_server::CODE_LIFETIME.as_millis())?;
    credentials
        .add_code(code.hash(), Timestamp(Timestamp::now().0 + lifetime))
        .await?;
    Ok(format!("{url}/?code={}", code.expose()))
}

/// A cookie for a command of this program, which may read the data folder and so is the person at the machine.
pub(crate) async fn sign_in(credentials: &impl CredentialStore) -> anyhow::Result<Secret> {
    let (code, cookie) = (Secret::generate("")?, Secret::generate("")?);
    let now = Timestamp::now();
    let expires = Timestamp(now.0 + i64::try_from(COMMAND_LIFETIME.as_millis())?);
    credentials.add_code(code.hash(), expires).await?;
    let redeemed = credentials
        .redeem_code(code.hash(), cookie.hash(), expires, now)
        .await?;
    anyhow::ensure!(redeemed, "the data folder did not keep a sign-in");
    Ok(cookie)
}
