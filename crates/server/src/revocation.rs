//! Stops the work of keys that are revoked while the server runs. Their connections end by themselves (`pulse`).

use std::collections::HashSet;
use std::time::Duration;

use crate::app::App;

/// Another process revokes a key without a notice, and the key's work must stop within five seconds.
const LOOK_AGAIN: Duration = Duration::from_secs(2);

/// Checks forever. Each check compares the keys that have work with the keys that exist, so that it also finds a key
/// that was created, used and revoked between two checks, or while no server ran.
pub(crate) async fn watch(app: &App) {
    loop {
        match app.authenticator.credentials().keys().await {
            Ok(keys) => {
                let keys: HashSet<String> = keys.into_iter().map(|key| key.id).collect();
                let supervision = app.sessions.for_supervision();
                for revoked in supervision.keys_with_work().difference(&keys) {
                    supervision.stop_work_of_key(revoked).await;
                }
            }
            Err(error) => tracing::debug!(%error, "can't check for revoked keys"),
        }
        tokio::time::sleep(LOOK_AGAIN).await;
    }
}
