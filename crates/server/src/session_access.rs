//! How doors get the server's sessions: with a viewer's rights only.

use std::sync::Arc;

use tiller_core::backend::Connections;
use tiller_core::credentials::Viewer;
use tiller_core::{BackendChoice, BackendInfo, PathPolicy, Sessions};

/// The sessions of this server. Doors read and change them only for a viewer. Cheap to clone.
#[derive(Clone)]
pub(crate) struct SessionAccess {
    /// With all rights, so it is only used here and for work of the server itself.
    sessions: Sessions,
}

impl SessionAccess {
    pub(crate) fn new(sessions: Sessions) -> Self {
        Self { sessions }
    }

    /// The sessions with the rights of an authenticated viewer.
    pub(crate) fn for_viewer(&self, viewer: Viewer) -> Sessions {
        self.sessions.for_viewer(viewer)
    }

    /// The sessions with all rights, for promises to clients that may be gone: the time limits and denials of tasks.
    /// Only the supervision of tasks and of revoked keys, and counts of all sessions, may call it; a test enforces this.
    pub(crate) fn for_supervision(&self) -> &Sessions {
        &self.sessions
    }

    pub(crate) fn paths(&self) -> &PathPolicy {
        self.sessions.paths()
    }

    /// Whether the server is about to end.
    pub(crate) fn is_stopping(&self) -> bool {
        self.sessions.is_stopping()
    }

    /// The default backend.
    pub(crate) fn backend(&self) -> BackendInfo {
        self.sessions.backend()
    }

    /// All backends with their options, the default one first.
    pub(crate) async fn backends(&self) -> Vec<BackendChoice> {
        self.sessions.backends().await
    }

    /// Accepts the connections of agents that connect to the server.
    pub(crate) fn connections(&self) -> Option<Arc<dyn Connections>> {
        self.sessions.connections()
    }
}

#[cfg(test)]
mod tests {
    use std::path::{Path, PathBuf};

    fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                sources(&path, found);
            } else {
                found.push(path);
            }
        }
    }

    /// Files outside of `allowed` that contain `text`.
    fn elsewhere(text: &str, allowed: &[&str]) -> Vec<PathBuf> {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
        let mut found = Vec::new();
        sources(&root, &mut found);
        found.retain(|path| {
            let is_allowed = allowed.iter().any(|allowed| *path == root.join(allowed));
            !is_allowed && std::fs::read_to_string(path).unwrap().contains(text)
        });
        found
    }

    #[test]
    fn no_door_has_more_rights_than_its_caller() {
        // All rights, for the server itself and for a caller that has proved to be the person at the machine.
        let all = elsewhere(
            "for_supervision()",
            &[
                "session_access.rs",
                "app.rs",
                "announcements.rs",
                "metrics.rs",
                "task/supervise.rs",
            ],
        );
        assert_eq!(all, Vec::<PathBuf>::new());
        let person = elsewhere("Viewer::PERSON", &["session_access.rs", "auth.rs"]);
        assert_eq!(person, Vec::<PathBuf>::new());
        // Sessions for one viewer are not turned into those of another.
        let turned = elsewhere("sessions.for_viewer(Viewer", &["session_access.rs"]);
        assert_eq!(turned, Vec::<PathBuf>::new());
    }
}
