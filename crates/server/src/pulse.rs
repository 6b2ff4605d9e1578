//! Periodic checks of long connections: whether their credential is still valid.

use std::time::Duration;

use tokio::time::{Interval, MissedTickBehavior};

use crate::app::App;
use crate::auth::{Credential, Visitor};

/// A revoked key must be disconnected within five seconds, also on a busy machine.
const HEARTBEAT: Duration = Duration::from_secs(3);

/// A comment after so many quiet heartbeats keeps proxies from closing an event stream; most wait for a minute.
const QUIET_HEARTBEATS: u32 = 5;

pub(crate) struct Pulse {
    app: App,
    credential: Credential,
    heartbeat: Interval,
    quiet: u32,
}

impl Pulse {
    pub(crate) fn new(app: &App, visitor: &Visitor) -> Self {
        let mut heartbeat = tokio::time::interval(HEARTBEAT);
        heartbeat.set_missed_tick_behavior(MissedTickBehavior::Delay);
        Self {
            app: app.clone(),
            credential: visitor.credential.clone(),
            heartbeat,
            quiet: 0,
        }
    }

    /// Waits for the next check. Cancel-safe.
    pub(crate) async fn beat(&mut self) {
        self.heartbeat.tick().await;
    }

    /// Whether the credential is still valid. A store that does not answer is no reason to disconnect a client.
    pub(crate) async fn is_valid(&self) -> bool {
        !matches!(self.app.authenticator.viewer(&self.credential).await, Ok(None))
    }

    /// An event was sent.
    pub(crate) fn sent(&mut self) {
        self.quiet = 0;
    }

    /// The comment of a quiet event stream, if one is due.
    pub(crate) fn keep_alive_comment(&mut self) -> Option<String> {
        self.quiet += 1;
        (self.quiet >= QUIET_HEARTBEATS).then(|| {
            self.quiet = 0;
            ": still here\n\n".to_owned()
        })
    }
}
