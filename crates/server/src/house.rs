//! What the doors share of this server's sessions: they get them through a viewer, or not at all.

use std::sync::Arc;

use tiller_core::backend::Connections;
use tiller_core::credentials::Viewer;
use tiller_core::{BackendChoice, BackendInfo, PathPolicy, Sessions};

/// The sessions of this server. Whoever reads or changes one says first for whom. Cheap to clone.
#[derive(Clone)]
pub(crate) struct House {
    /// With all rights, so it does not leave this file but for what the server does of its own accord.
    sessions: Sessions,
}

impl House {
    pub(crate) fn new(sessions: Sessions) -> Self {
        Self { sessions }
    }

    /// The sessions as someone may see and use them who has come in.
    pub(crate) fn for_viewer(&self, viewer: Viewer) -> Sessions {
        self.sessions.for_viewer(viewer)
    }

    /// The sessions for what was promised to someone who may be gone: the time limits and refusals of tasks. Only the
    /// supervision of tasks may ask for it; a test looks.
    pub(crate) fn for_supervision(&self) -> &Sessions {
        &self.sessions
    }

    pub(crate) fn paths(&self) -> &PathPolicy {
        self.sessions.paths()
    }

    /// The default one.
    pub(crate) fn backend(&self) -> BackendInfo {
        self.sessions.backend()
    }

    /// All of them with their options, the default one first.
    pub(crate) async fn backends(&self) -> Vec<BackendChoice> {
        self.sessions.backends().await
    }

    /// Where the connections of agents go that connect to us.
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
    fn no_door_has_more_rights_than_its_visitor() {
        // Every right there is, for the server itself and for whoever has shown to be the person at the machine.
        let all = elsewhere(
            "for_supervision()",
            &["house.rs", "app.rs", "revocation.rs", "task/supervise.rs"],
        );
        assert_eq!(all, Vec::<PathBuf>::new());
        let person = elsewhere("Viewer::PERSON", &["house.rs", "auth.rs"]);
        assert_eq!(person, Vec::<PathBuf>::new());
        // Sessions that were given to one viewer are not turned into another's.
        let turned = elsewhere("sessions.for_viewer(Viewer", &["house.rs"]);
        assert_eq!(turned, Vec::<PathBuf>::new());
    }
}
