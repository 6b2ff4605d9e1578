//! From one writer to everyone who watches.

use std::sync::Arc;

use tokio::sync::broadcast;

use crate::credentials::Viewer;
use crate::event::Notice;

/// How far a reader may fall behind before it is told to resynchronise. At 20 events a second from each of 50
/// sessions this is eight seconds; a slot costs a pointer.
const BACKLOG: usize = 8192;

#[derive(Clone, Debug)]
pub(crate) struct Hub {
    sender: broadcast::Sender<Published>,
}

#[derive(Clone, Debug)]
struct Published {
    owner: Option<Arc<str>>,
    notice: Notice,
}

impl Hub {
    pub(crate) fn new() -> Self {
        Self {
            sender: broadcast::channel(BACKLOG).0,
        }
    }

    /// `owner` is that of the notice's session.
    pub(crate) fn publish(&self, owner: Option<&Arc<str>>, notice: Notice) {
        // An error only says that nobody is watching.
        drop(self.sender.send(Published {
            owner: owner.cloned(),
            notice,
        }));
    }

    pub(crate) fn watch(&self, viewer: Viewer) -> LiveFeed {
        LiveFeed {
            receiver: self.sender.subscribe(),
            viewer,
        }
    }
}

/// Everything that happens from now on, in all sessions that the viewer may see.
#[derive(Debug)]
pub struct LiveFeed {
    receiver: broadcast::Receiver<Published>,
    viewer: Viewer,
}

/// The reader was too slow: what it has not read is gone from memory, and must be read from the log again.
#[derive(Debug, thiserror::Error)]
#[error("the reader fell behind")]
pub struct Lagged;

impl LiveFeed {
    /// `None` when the server is going away.
    pub async fn next(&mut self) -> Option<Result<Notice, Lagged>> {
        loop {
            return match self.receiver.recv().await {
                Ok(published) if !self.viewer.may_see(published.owner.as_deref()) => continue,
                Ok(published) => Some(Ok(published.notice)),
                Err(broadcast::error::RecvError::Lagged(_)) => Some(Err(Lagged)),
                Err(broadcast::error::RecvError::Closed) => None,
            };
        }
    }
}
