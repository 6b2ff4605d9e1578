//! Keys and browsers that come while a page is open, whoever made them: the page says so.

use std::collections::HashSet;
use std::time::Duration;

use tiller_core::credentials::{ApiKey, SignIn, SignInId, SignInSource};
use tiller_core::{StoreError, Timestamp};
use tokio::sync::{Notify, broadcast};

use crate::app::App;

/// Other processes make and revoke credentials, and tell nobody. What a revoked key started must stop within five seconds.
const LOOK_AGAIN: Duration = Duration::from_secs(2);

/// A page that has missed more than so many has other worries.
const KEPT: usize = 64;

/// Something that lets someone in, and was not there before.
#[derive(Clone, Debug)]
pub(crate) enum NewCredential {
    Key(ApiKey),
    Browser(SignIn),
}

pub(crate) struct Announcements {
    news: broadcast::Sender<NewCredential>,
    look: Notify,
}

impl Default for Announcements {
    fn default() -> Self {
        Self {
            news: broadcast::Sender::new(KEPT),
            look: Notify::new(),
        }
    }
}

impl Announcements {
    /// What comes from now on.
    pub(crate) fn hear(&self) -> broadcast::Receiver<NewCredential> {
        self.news.subscribe()
    }

    /// Something has changed just now: no need to wait for the next look.
    pub(crate) fn look_again(&self) {
        self.look.notify_one();
    }
}

/// What was there at the last look.
struct Known {
    keys: HashSet<String>,
    sign_ins: HashSet<SignInId>,
}

/// Looks for ever: announces what is new, and stops what revoked keys have under way.
pub(crate) async fn watch(app: &App) {
    let mut known = None;
    loop {
        match look(app, known.as_ref()).await {
            Ok(found) => known = Some(found),
            Err(error) => tracing::debug!(%error, "can't look for keys and sign-ins that have come or gone"),
        }
        tokio::select! {
            () = tokio::time::sleep(LOOK_AGAIN) => {}
            () = app.announcements.look.notified() => {}
        }
    }
}

async fn look(app: &App, known: Option<&Known>) -> Result<Known, StoreError> {
    let credentials = app.authenticator.credentials();
    let keys = credentials.keys().await?;
    stop_revoked(app, &keys).await?;
    let mut sign_ins = credentials.sign_ins(Timestamp::now()).await?;
    sign_ins.retain(|sign_in| sign_in.source == SignInSource::Browser);
    let found = Known {
        keys: keys.iter().map(|key| key.id.clone()).collect(),
        sign_ins: sign_ins.iter().map(|sign_in| sign_in.id.clone()).collect(),
    };
    if let Some(known) = known {
        let keys = keys.into_iter().filter(|key| !known.keys.contains(&key.id));
        let browsers = sign_ins
            .into_iter()
            .filter(|sign_in| !known.sign_ins.contains(&sign_in.id));
        let news = keys
            .map(NewCredential::Key)
            .chain(browsers.map(NewCredential::Browser));
        for new in news {
            // Nobody may be listening.
            app.announcements.news.send(new).ok();
        }
    }
    Ok(found)
}

/// Compares the keys that have something under way with the keys that exist, so that a key is noticed that was created, used
/// and revoked between two looks, or while no server ran.
async fn stop_revoked(app: &App, keys: &[ApiKey]) -> Result<(), StoreError> {
    let supervision = app.sessions.for_supervision();
    let mut at_work = supervision.keys_with_work();
    at_work.retain(|id| keys.iter().all(|key| key.id != *id));
    if at_work.is_empty() {
        return Ok(());
    }
    let kept = app.authenticator.credentials().keys_with_kept_sessions().await?;
    for revoked in at_work.iter().filter(|id| !kept.contains(id)) {
        supervision.stop_work_of_key(revoked).await;
    }
    Ok(())
}
