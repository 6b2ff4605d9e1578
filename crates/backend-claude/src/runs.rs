//! CLIs that connect to the server instead of using pipes.
//!
//! Each run has its own secret, with which the CLI is started and which is valid during the run, including reconnects.
//! The server accepts the connection and passes it on; only this crate reads it.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use tiller_core::backend::{Connection, Connections};
use tiller_core::credentials::{Secret, SecretHash};
use tiller_core::{SessionId, StoreError};
use tiller_process::{Socket, SocketSender, Sockets, sockets};

/// The runs from which a connection may come. Cheap to clone.
#[derive(Clone, Default)]
pub(crate) struct Runs(Arc<Shared>);

#[derive(Default)]
struct Shared {
    /// `ws://HOST:PORT`, once the server listens.
    address: OnceLock<String>,
    /// Held for look-ups only.
    expected: Mutex<HashMap<SessionId, Expected>>,
}

struct Expected {
    secret: SecretHash,
    sender: SocketSender,
}

/// One run, expected until this is dropped.
pub(crate) struct Run {
    pub(crate) url: String,
    pub(crate) sockets: Sockets,
    pub(crate) guard: Guard,
}

pub(crate) struct Guard {
    runs: Runs,
    session: SessionId,
    secret: SecretHash,
}

impl Runs {
    /// Expects the agent of a session. An earlier run of the session is no longer expected.
    pub(crate) fn expect(&self, session: SessionId) -> Result<Run, StoreError> {
        let address = self
            .0
            .address
            .get()
            .ok_or_else(|| StoreError::Unavailable("the server does not listen yet".to_owned()))?;
        let secret = Secret::generate("")?;
        let (sender, sockets) = sockets();
        let expected = Expected {
            secret: secret.hash(),
            sender,
        };
        let mut runs = self.0.expected.lock().unwrap_or_else(PoisonError::into_inner);
        runs.insert(session, expected);
        let guard = Guard {
            runs: self.clone(),
            session,
            secret: secret.hash(),
        };
        let url = format!("{address}/ws/cli/{session}?run={}", secret.expose());
        Ok(Run { url, sockets, guard })
    }

    fn find(&self, session: SessionId, secret: &str) -> Option<SocketSender> {
        let runs = self.0.expected.lock().unwrap_or_else(PoisonError::into_inner);
        let expected = runs.get(&session)?;
        // Hashes of 256 random bits: the duration of the comparison reveals nothing useful.
        (expected.secret == SecretHash::of(secret)).then(|| expected.sender.clone())
    }
}

impl Connections for Runs {
    fn serve_at(&self, address: String) {
        // The address is set once: there is one server, and it listens at one address.
        self.0.address.set(address).ok();
    }

    fn expects(&self, session: SessionId, secret: &str, peer: SocketAddr) -> bool {
        // The secret is on the command line of the CLI, which everyone on this machine can read.
        self.find(session, secret).is_some() && tiller_process::is_own_socket(peer)
    }

    fn attach(&self, session: SessionId, secret: &str, connection: Connection) -> BoxFuture<'static, bool> {
        let Some(sender) = self.find(session, secret) else {
            return std::future::ready(false).boxed();
        };
        let socket = Socket::new(connection.incoming, connection.outgoing);
        async move { sender.attach(socket).await.is_ok() }.boxed()
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        let mut runs = self
            .runs
            .0
            .expected
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        // A newer run of the session has its own secret.
        if runs
            .get(&self.session)
            .is_some_and(|expected| expected.secret == self.secret)
        {
            runs.remove(&self.session);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_serves_its_own_run_for_as_long_as_it_lives() {
        let runs = Runs::default();
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let peer = listener.local_addr().unwrap();
        let (session, other) = (SessionId::random(), SessionId::random());
        assert!(runs.expect(session).is_err(), "nobody listens yet");
        runs.serve_at("ws://127.0.0.1:1".to_owned());
        let secret = |run: &Run| run.url.split_once("?run=").unwrap().1.to_owned();

        let first = runs.expect(session).unwrap();
        let first_secret = secret(&first);
        assert!(
            first
                .url
                .starts_with(&format!("ws://127.0.0.1:1/ws/cli/{session}?run="))
        );
        assert!(runs.expects(session, &first_secret, peer));
        // Whoever has read it elsewhere, on this machine or not.
        assert!(!runs.expects(session, &first_secret, "192.0.2.1:1".parse().unwrap()));
        assert!(!runs.expects(other, &first_secret, peer) && !runs.expects(session, "guessed", peer));

        let second = runs.expect(session).unwrap();
        assert!(!runs.expects(session, &first_secret, peer));
        drop(first);
        assert!(
            runs.expects(session, &secret(&second), peer),
            "the end of the first is not the second's"
        );
        let last = secret(&second);
        drop(second);
        assert!(!runs.expects(session, &last, peer));
    }
}
