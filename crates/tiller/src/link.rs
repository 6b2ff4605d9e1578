//! Sign-in links.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::time::Duration;

use anyhow::Context;
use tiller_core::Timestamp;
use tiller_core::audit::Actor;
use tiller_core::credentials::{CredentialStore, Secret, SignIn, SignInId, SignInSecrets, SignInSource};

use crate::data_dir::DataDir;

/// A code that a command creates for itself is used at once.
const OWN_CODE_LIFETIME: Duration = Duration::from_mins(1);

/// The name of this program's commands in the list of sign-ins.
const USER_AGENT: &str = "tiller (command line)";

/// Prints a new link for the server that uses this data folder.
pub(crate) async fn run(data_dir: &DataDir) -> anyhow::Result<()> {
    let server = data_dir.running().context(
        "no server is running with this data folder. Start one with `tiller`; it prints a link, too.",
    )?;
    let store = data_dir.open_store()?;
    println!("{}", with_code(server.link_url(), &create_code(&store).await?));
    Ok(())
}

/// A code that signs one browser in, once.
pub(crate) async fn create_code(credentials: &impl CredentialStore) -> anyhow::Result<Secret> {
    let code = Secret::generate("")?;
    let lifetime = i64::try_from(tiller_server::CODE_LIFETIME.as_millis())?;
    credentials
        .add_code(code.hash(), Timestamp(Timestamp::now().0 + lifetime))
        .await?;
    Ok(code)
}

pub(crate) fn with_code(url: &str, code: &Secret) -> String {
    format!("{url}/?code={}", code.expose())
}

/// The link to a new server. If the code can't be stored, browsers that are signed in can still use the server.
pub(crate) async fn to_new_server(credentials: &impl CredentialStore, url: &str) -> String {
    match create_code(credentials).await {
        Ok(code) => with_code(url, &code),
        Err(error) => {
            tracing::warn!(
                "The link signs nobody in. Browsers that are signed in, and keys, work all the same; for a new one, mend \
                 what is wrong and run `tiller link`. What is wrong: {error:#}"
            );
            format!("{url}/")
        }
    }
}

/// The address that a browser can open if a server listens on all of this machine's addresses: the one that leads out
/// of the machine, or loopback if none does.
pub(crate) fn openable(bound: SocketAddr) -> Option<SocketAddr> {
    if !bound.ip().is_unspecified() {
        return None;
    }
    // Two addresses that belong to nobody. A server on all IPv6 addresses can usually be reached by IPv4, too.
    let far: [IpAddr; 2] = [
        Ipv4Addr::new(192, 0, 2, 1).into(),
        Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1).into(),
    ];
    let mut reachable = far.iter().filter(|far| far.is_ipv4() || bound.is_ipv6());
    let ip = reachable.find_map(|far| way_to(*far));
    Some(SocketAddr::new(
        ip.unwrap_or(Ipv4Addr::LOCALHOST.into()),
        bound.port(),
    ))
}

/// The local address of the route to `far`. Nothing is sent: connecting a datagram socket only selects a route.
fn way_to(far: IpAddr) -> Option<IpAddr> {
    let any: IpAddr = match far {
        IpAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        IpAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    let socket = UdpSocket::bind((any, 0)).ok()?;
    socket.connect((far, 9)).ok()?;
    Some(socket.local_addr().ok()?.ip())
}

/// The sign-in of a command of this program, which may read the data folder and therefore acts as the person at the
/// machine.
pub(crate) struct OwnSignIn {
    id: SignInId,
    cookie: Secret,
    page: Secret,
    instance: String,
}

impl OwnSignIn {
    pub(crate) async fn create(credentials: &impl CredentialStore) -> anyhow::Result<Self> {
        let code = Secret::generate("")?;
        let now = Timestamp::now();
        let sign_in = SignIn {
            source: SignInSource::Command,
            ..SignIn::new(USER_AGENT, Ipv4Addr::LOCALHOST.to_string(), now)?
        };
        let own = Self {
            id: sign_in.id.clone(),
            cookie: Secret::generate("")?,
            page: Secret::generate("")?,
            instance: credentials.instance().await?,
        };
        let secrets = SignInSecrets {
            cookie: own.cookie.hash(),
            page: own.page.hash(),
        };
        let expires = Timestamp(now.0 + i64::try_from(OWN_CODE_LIFETIME.as_millis())?);
        credentials.add_code(code.hash(), expires).await?;
        let redeemed = credentials
            .redeem_code(code.hash(), sign_in, secrets, now)
            .await?;
        anyhow::ensure!(redeemed, "the sign-in could not be stored in the data folder");
        Ok(own)
    }

    /// The value of the header `Cookie`.
    pub(crate) fn cookie(&self) -> String {
        format!(
            "{}={}",
            tiller_server::cookie_name(&self.instance),
            self.cookie.expose()
        )
    }

    /// The value of the header `Sec-WebSocket-Protocol`.
    pub(crate) fn protocols(&self) -> String {
        use tiller_server::{PAGE_PROTOCOL, PROTOCOL};
        format!("{PROTOCOL}, {PAGE_PROTOCOL}{}", self.page.expose())
    }

    /// Ends the sign-in, which is no longer needed.
    pub(crate) async fn end(self, credentials: &impl CredentialStore) {
        if let Err(error) = credentials.end_sign_in(self.id, Actor::CommandLine).await {
            tracing::debug!(%error, "the command's sign-in ends by itself, in a week");
        }
    }
}
