//! What every lasting connection looks at from time to time: whether its credential still holds.

use std::time::Duration;

use tokio::time::{Interval, MissedTickBehavior};

use crate::app::App;
use crate::auth::{Credential, Visitor};

/// A revoked key must be out within five seconds, also on a machine that has much to do.
const HEARTBEAT: Duration = Duration::from_secs(3);

/// A comment after so many quiet heartbeats keeps proxies from closing a stream of events; most wait for a minute.
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

    /// Waits until it is time to look. May be dropped and called again.
    pub(crate) async fn beat(&mut self) {
        self.heartbeat.tick().await;
    }

    /// Whether the visitor may stay. A store that does not answer is no reason to throw someone out.
    pub(crate) async fn is_welcome(&self) -> bool {
        !matches!(self.app.doorkeeper.viewer(&self.credential).await, Ok(None))
    }

    /// Something was sent.
    pub(crate) fn sent(&mut self) {
        self.quiet = 0;
    }

    /// At a beat at which a stream of events had nothing to say: what it says all the same, now and then.
    pub(crate) fn sign_of_life(&mut self) -> Option<String> {
        self.quiet += 1;
        (self.quiet >= QUIET_HEARTBEATS).then(|| {
            self.quiet = 0;
            ": still here\n\n".to_owned()
        })
    }
}
