//! Conversations kept elsewhere: a copy of what agents write, to resume it on another machine.

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::path::{Component, Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures_util::future::BoxFuture;
use serde::Deserialize;
use serde_json::Value;
use tokio::sync::mpsc;

use super::{project_name, transcript};
use tiller_message::Message;

/// How often a batch is offered to a store that fails, and how long is waited in between.
const TRIES: u32 = 3;
const PAUSE: Duration = Duration::from_millis(200);
/// Batches that wait for a slow store. More of them hold up the agent.
const BATCHES: usize = 64;

/// Why a store did not do what it should.
pub type StoreError = Box<dyn std::error::Error + Send + Sync>;

/// Which file of which conversation.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SessionKey {
    /// The project: the working directory, with everything but letters and digits turned into dashes.
    pub project: String,
    /// The conversation.
    pub session_id: String,
    /// What a subagent said is in a file of its own, such as `subagents/agent-1`; `None` is the conversation itself.
    pub subpath: Option<String>,
}

/// Keeps a copy of conversations: give it to [`Options::session_store`](crate::Options::session_store). What the agent
/// writes to disk goes to the store as well; a conversation that is resumed and not on disk is fetched from the store.
///
/// Entries are JSON objects, to be given back as they are. Most carry a `uuid`, under which an entry may be kept only
/// once. A store that fails does not stop the agent: a batch is offered three times, then dropped with a log line.
pub trait SessionStore: Send + Sync + 'static {
    /// Adds entries at the end.
    fn append<'a>(
        &'a self,
        key: &'a SessionKey,
        entries: &'a [Value],
    ) -> BoxFuture<'a, Result<(), StoreError>>;

    /// All entries, in order; `None` if there is nothing under this key.
    fn load<'a>(&'a self, key: &'a SessionKey) -> BoxFuture<'a, Result<Option<Vec<Value>>, StoreError>>;

    /// The subpaths of a conversation. A store that keeps none need not say so.
    fn subpaths<'a>(&'a self, _key: &'a SessionKey) -> BoxFuture<'a, Result<Vec<String>, StoreError>> {
        Box::pin(std::future::ready(Ok(Vec::new())))
    }
}

/// A store in memory, for tests and as an example.
#[derive(Clone, Default)]
pub struct MemoryStore {
    entries: Arc<Mutex<BTreeMap<SessionKey, Vec<Value>>>>,
}

impl MemoryStore {
    /// An empty store. Clones share what is in it.
    pub fn new() -> Self {
        Self::default()
    }

    /// What is in it.
    pub fn keys(&self) -> Vec<SessionKey> {
        self.lock().keys().cloned().collect()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, BTreeMap<SessionKey, Vec<Value>>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl SessionStore for MemoryStore {
    fn append<'a>(
        &'a self,
        key: &'a SessionKey,
        entries: &'a [Value],
    ) -> BoxFuture<'a, Result<(), StoreError>> {
        let mut all = self.lock();
        let kept = all.entry(key.clone()).or_default();
        for entry in entries {
            // Entries without an id may be the same and mean something all the same.
            let is_known = entry["uuid"].is_string() && kept.iter().any(|kept| kept["uuid"] == entry["uuid"]);
            if !is_known {
                kept.push(entry.clone());
            }
        }
        Box::pin(std::future::ready(Ok(())))
    }

    fn load<'a>(&'a self, key: &'a SessionKey) -> BoxFuture<'a, Result<Option<Vec<Value>>, StoreError>> {
        let entries = self.lock().get(key).cloned();
        Box::pin(std::future::ready(Ok(entries)))
    }

    fn subpaths<'a>(&'a self, key: &'a SessionKey) -> BoxFuture<'a, Result<Vec<String>, StoreError>> {
        let keys = self.keys().into_iter();
        let subpaths = keys
            .filter(|other| other.project == key.project && other.session_id == key.session_id)
            .filter_map(|other| other.subpath)
            .collect();
        Box::pin(std::future::ready(Ok(subpaths)))
    }
}

impl fmt::Debug for MemoryStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryStore").field("keys", &self.keys()).finish()
    }
}

/// Passes on to a store what the agent writes to disk.
pub(crate) struct Mirror {
    batches: mpsc::Sender<(SessionKey, Vec<Value>)>,
}

impl Mirror {
    /// The mirror, and the task that ends when the mirror is dropped and everything is in the store.
    pub(crate) fn start(store: Arc<dyn SessionStore>) -> (Self, tokio::task::JoinHandle<()>) {
        let (batches, mut waiting) = mpsc::channel::<(SessionKey, Vec<Value>)>(BATCHES);
        let task = tokio::spawn(async move {
            while let Some((key, entries)) = waiting.recv().await {
                keep(store.as_ref(), &key, &entries).await;
            }
        });
        (Self { batches }, task)
    }

    /// Whether the message is for the mirror. `None` if it is not.
    pub(crate) fn batch(message: &Message) -> Option<(SessionKey, Vec<Value>)> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Frame {
            file_path: PathBuf,
            entries: Vec<Value>,
        }
        let Frame { file_path, entries } = message.decode().ok()?;
        Some((key_of(&file_path)?, entries))
    }

    pub(crate) async fn send(&self, batch: (SessionKey, Vec<Value>)) {
        if self.batches.send(batch).await.is_err() {
            tracing::debug!("the session store takes nothing any more");
        }
    }

    pub(crate) fn sender(&self) -> Self {
        Self {
            batches: self.batches.clone(),
        }
    }
}

async fn keep(store: &dyn SessionStore, key: &SessionKey, entries: &[Value]) {
    for attempt in 1..=TRIES {
        match store.append(key, entries).await {
            Ok(()) => return,
            Err(error) if attempt < TRIES => {
                tracing::debug!(%error, attempt, "the session store failed");
                tokio::time::sleep(PAUSE * attempt).await;
            }
            Err(error) => {
                tracing::error!(%error, ?key, entries = entries.len(), "the session store has lost entries");
            }
        }
    }
}

/// `…/projects/PROJECT/SESSION.jsonl`, or `…/projects/PROJECT/SESSION/SUBPATH.jsonl`.
fn key_of(path: &Path) -> Option<SessionKey> {
    let names: Vec<&str> = path
        .components()
        .filter_map(|part| match part {
            Component::Normal(name) => name.to_str(),
            _ => None,
        })
        .collect();
    let projects = names.iter().rposition(|name| *name == "projects")?;
    let (project, rest) = names.get(projects + 1..)?.split_first()?;
    let (session, subpath) = rest.split_first()?;
    let subpath = match subpath {
        [] => None,
        parts => Some(parts.join("/").strip_suffix(".jsonl")?.to_owned()),
    };
    let session_id = session.strip_suffix(".jsonl").unwrap_or(session);
    uuid::Uuid::parse_str(session_id).ok()?;
    Some(SessionKey {
        project: (*project).to_owned(),
        session_id: session_id.to_owned(),
        subpath,
    })
}

/// Writes a conversation that is not on disk from the store. Does nothing if it is on disk, or not in the store either.
pub(crate) async fn restore(
    store: &dyn SessionStore,
    claude_home: &Path,
    cwd: &Path,
    session_id: &str,
) -> io::Result<()> {
    if uuid::Uuid::parse_str(session_id).is_err() {
        return Ok(());
    }
    let key = SessionKey {
        project: project_name(&cwd.canonicalize().unwrap_or_else(|_| cwd.to_owned())),
        session_id: session_id.to_owned(),
        subpath: None,
    };
    let folder = claude_home.join("projects").join(&key.project);
    if folder.join(format!("{session_id}.jsonl")).exists() {
        return Ok(());
    }
    let Some(entries) = store.load(&key).await.map_err(io::Error::other)? else {
        return Ok(());
    };
    let mut files = vec![(folder.join(format!("{session_id}.jsonl")), entries)];
    for subpath in store.subpaths(&key).await.map_err(io::Error::other)? {
        let is_safe = Path::new(&subpath)
            .components()
            .all(|part| matches!(part, Component::Normal(_)));
        let key = SessionKey {
            subpath: Some(subpath.clone()),
            ..key.clone()
        };
        if is_safe && let Some(entries) = store.load(&key).await.map_err(io::Error::other)? {
            files.push((folder.join(session_id).join(format!("{subpath}.jsonl")), entries));
        }
    }
    // What resuming looks for comes last, so that it is whole.
    files.reverse();
    let writing = tokio::task::spawn_blocking(move || {
        files.iter().try_for_each(|(path, entries)| {
            if let Some(folder) = path.parent() {
                std::fs::create_dir_all(folder)?;
            }
            transcript::create(path, entries)
        })
    });
    writing.await.map_err(io::Error::other)?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_where_files_are() {
        let id = "5f0c0000-0000-4000-8000-000000000000";
        let main = key_of(Path::new(&format!("/h/.claude/projects/-srv-x/{id}.jsonl"))).unwrap();
        assert_eq!(
            (main.project.as_str(), main.session_id.as_str(), main.subpath),
            ("-srv-x", id, None)
        );
        let sub = key_of(Path::new(&format!("/h/projects/-p/{id}/subagents/agent-1.jsonl"))).unwrap();
        assert_eq!(sub.subpath.as_deref(), Some("subagents/agent-1"));
        assert_eq!(key_of(Path::new("/h/projects/-p/memory.jsonl")), None);
    }
}
