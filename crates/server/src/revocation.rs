//! Keys that are revoked while the server runs: what was started with them stops. Their connections look after themselves
//! (`pulse`).

use std::collections::HashSet;
use std::time::Duration;

use crate::app::App;

/// A key is revoked by another process, which tells nobody. What it started must stop within five seconds.
const LOOK_AGAIN: Duration = Duration::from_secs(2);

/// Looks for ever. Each look compares the keys that have something under way with the keys that exist, so that a key
/// is noticed that was created, used and revoked between two looks, or while no server ran.
pub(crate) async fn watch(app: &App) {
    loop {
        match app.doorkeeper.credentials().keys().await {
            Ok(keys) => {
                let keys: HashSet<String> = keys.into_iter().map(|key| key.id).collect();
                let supervision = app.sessions.for_supervision();
                for revoked in supervision.keys_at_work().difference(&keys) {
                    supervision.end_of_key(revoked).await;
                }
            }
            Err(error) => tracing::debug!(%error, "can't look for keys that were revoked"),
        }
        tokio::time::sleep(LOOK_AGAIN).await;
    }
}
