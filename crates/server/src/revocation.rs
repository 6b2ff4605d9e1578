//! Keys that are revoked while the server runs: what was started with them stops. Their connections look after themselves
//! (`pulse`).

use std::collections::HashSet;
use std::time::Duration;

use crate::app::App;

/// A key is revoked by another process, which tells nobody. What it started must stop within five seconds.
const LOOK_AGAIN: Duration = Duration::from_secs(2);

/// Looks for ever.
pub(crate) async fn watch(app: &App) {
    // Of a key that was revoked while no server ran, turns may still run.
    let mut known = app.sessions.for_supervision().running_keys();
    loop {
        match app.doorkeeper.credentials().keys().await {
            Ok(keys) => {
                let keys: HashSet<String> = keys.into_iter().map(|key| key.id).collect();
                for revoked in known.difference(&keys) {
                    app.sessions.for_supervision().end_of_key(revoked).await;
                }
                known = keys;
            }
            Err(error) => tracing::debug!(%error, "can't look for keys that were revoked"),
        }
        tokio::time::sleep(LOOK_AGAIN).await;
    }
}
