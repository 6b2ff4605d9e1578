//! The list of all sessions, kept up to date by reading only what has changed.

use std::cell::RefCell;
use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rayon::prelude::*;

use crate::digest::Digest;
use crate::error::Result;
use crate::follow::{Followed, follow};
use crate::index::Index;
use crate::lines::Buffer;
use crate::model::{Project, Session};
use crate::place::{ProjectId, Projects, SessionId, Transcript};

thread_local! {
    /// Reading memory of each thread of the pool.
    static BUFFER: RefCell<Buffer> = RefCell::default();
}

/// Runs something with this thread's reading memory.
pub(crate) fn with_buffer<T>(run: impl FnOnce(&mut Buffer) -> T) -> T {
    BUFFER.with(|buffer| match buffer.try_borrow_mut() {
        Ok(mut buffer) => run(&mut buffer),
        // Only if `run` itself came here again.
        Err(_) => run(&mut Buffer::default()),
    })
}

pub(crate) type Known = HashMap<String, Arc<Followed<Digest>>>;

/// A transcript and what the list shows of it.
#[derive(Clone)]
pub(crate) struct Listed {
    pub(crate) transcript: Transcript,
    pub(crate) digest: Arc<Followed<Digest>>,
}

#[derive(Default)]
pub(crate) struct Catalogue {
    known: Mutex<State>,
}

#[derive(Default)]
struct State {
    digests: Known,
    /// Whether all that the index has is in `digests`.
    has_all: bool,
}

impl Catalogue {
    /// Takes in what the index has, so that nobody has to wait for it later.
    pub(crate) fn prepare(&self, index: Option<&Index>) {
        drop(self.all(index));
    }

    /// With everything that the index has.
    fn all(&self, index: Option<&Index>) -> MutexGuard<'_, State> {
        let mut state = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(index) = index.filter(|_| !state.has_all) {
            match index.load_all::<Digest>() {
                Ok(saved) => {
                    for (path, digest) in saved {
                        state.digests.entry(path).or_insert_with(|| Arc::new(digest));
                    }
                }
                Err(error) => {
                    tracing::warn!(%error, "the list of sessions is read without the index");
                    if let Err(error) = index.mend_parts(&error) {
                        tracing::warn!(%error, "the index of the history can't be made anew");
                    }
                }
            }
        }
        state.has_all = true;
        state
    }

    /// With what the index has of one transcript: opening a session should not wait for the list.
    fn one(&self, index: Option<&Index>, path: &str) -> MutexGuard<'_, State> {
        let mut state = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if !state.has_all && !state.digests.contains_key(path) {
            let saved = index.and_then(|index| index.load::<Digest>(path).ok().flatten());
            state
                .digests
                .extend(saved.map(|digest| (path.to_owned(), Arc::new(digest))));
        }
        state
    }

    /// The digests of these transcripts as they are now.
    pub(crate) fn refresh(
        &self,
        projects: &Projects,
        index: Option<&Index>,
        files: Vec<Transcript>,
    ) -> Vec<Listed> {
        let mut fresh = Vec::with_capacity(files.len());
        let mut stale = Vec::new();
        {
            let state = match files.as_slice() {
                [only] => self.one(index, &only.path),
                _ => self.all(index),
            };
            for transcript in files {
                match state.digests.get(&transcript.path) {
                    Some(digest) if digest.stamp == transcript.stamp => {
                        fresh.push(Listed {
                            digest: Arc::clone(digest),
                            transcript,
                        });
                    }
                    old => stale.push((old.cloned(), transcript)),
                }
            }
        }
        if stale.is_empty() {
            return fresh;
        }
        let Ok(Some(root)) = projects.root() else {
            return fresh;
        };
        // The largest first, so that no thread is left alone with one at the end.
        stale.sort_by_key(|(_, transcript)| std::cmp::Reverse(transcript.stamp.size));
        let read: Vec<Listed> = stale
            .into_par_iter()
            .with_max_len(1)
            .filter_map(|(old, transcript)| {
                let (mut file, stamp) = root.open(&transcript.path).ok()?;
                let old = old.map(|old| Followed::clone(&old));
                match with_buffer(|buffer| follow(&mut file, stamp, old, buffer)) {
                    Ok(digest) => Some(Listed {
                        transcript: Transcript { stamp, ..transcript },
                        digest: Arc::new(digest),
                    }),
                    Err(error) => {
                        tracing::warn!(%error, "a transcript could not be read");
                        None
                    }
                }
            })
            .collect();
        if let Some(index) = index {
            let parts = read
                .iter()
                .map(|listed| (listed.transcript.path.as_str(), &*listed.digest));
            if let Err(error) = index.save(parts) {
                tracing::warn!(%error, "the list of sessions could not be kept in the index");
            }
        }
        let mut state = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        for listed in &read {
            state
                .digests
                .insert(listed.transcript.path.clone(), Arc::clone(&listed.digest));
        }
        drop(state);
        fresh.extend(read);
        fresh
    }

    /// What is known of every transcript, by path, without looking whether it is still so.
    pub(crate) fn by_path(&self, index: Option<&Index>) -> Known {
        self.all(index).digests.clone()
    }

    /// Forgets transcripts that are no longer there: all but these.
    pub(crate) fn keep_only(&self, index: Option<&Index>, listed: &[Listed]) -> Result<()> {
        let mut state = self.all(index);
        // Each of these is known. If no others are, which is nearly always so, there is nothing to be looked for.
        if state.digests.len() <= listed.len() {
            return Ok(());
        }
        let present: HashSet<&str> = listed
            .iter()
            .map(|entry| entry.transcript.path.as_str())
            .collect();
        let gone: Vec<String> = state
            .digests
            .keys()
            .filter(|path| !present.contains(path.as_str()))
            .cloned()
            .collect();
        for path in &gone {
            state.digests.remove(path);
        }
        drop(state);
        match index {
            Some(index) if !gone.is_empty() => index.forget::<Digest>(&gone),
            _ => Ok(()),
        }
    }
}

impl Listed {
    /// Whether it belongs in the list of sessions: it has messages, and is no subagent's.
    pub(crate) fn is_session(&self) -> bool {
        !self.transcript.is_subagent() && self.digest.current().message_count > 0
    }

    pub(crate) fn last_active(&self) -> &str {
        let digest = self.digest.current();
        digest.last_time.as_deref().unwrap_or_default()
    }

    pub(crate) fn newest_first(&self, other: &Self) -> std::cmp::Ordering {
        let by_time = other.last_active().cmp(self.last_active());
        by_time.then_with(|| self.transcript.path.cmp(&other.transcript.path))
    }

    pub(crate) fn session(&self) -> Result<Session> {
        let digest = self.digest.current();
        Ok(Session {
            id: SessionId::parse(self.transcript.stem())?,
            title: digest.title(),
            project_path: digest
                .cwd
                .clone()
                .unwrap_or_else(|| decoded(self.transcript.project())),
            timestamp: digest
                .created
                .clone()
                .or_else(|| digest.first_time.clone())
                .unwrap_or_default(),
            message_count: digest.message_count,
            tools_used: digest.tools.clone(),
            files_changed: digest.files_changed(),
            project: ProjectId::parse(self.transcript.project())?,
            last_active: self.last_active().to_owned(),
            size_bytes: self.transcript.stamp.size,
            models: digest.models.clone(),
            first_prompt: digest.prompt.clone(),
            custom_title: digest.custom_title.clone(),
            summary: digest.summary.clone().or_else(|| digest.ai_title.clone()),
            git_branch: digest.git_branch.clone(),
            cli_version: digest.version.clone(),
            damaged_lines: digest.damaged,
            unknown_lines: digest.unknown.clone(),
            archived: false,
            live: false,
            driver: None,
        })
    }
}

/// The sessions of one project, newest first.
pub(crate) struct Group<'a> {
    id: &'a str,
    pub(crate) sessions: Vec<&'a Listed>,
}

/// These sessions by project, the one used last first.
pub(crate) fn groups(listed: &[Listed]) -> Vec<Group<'_>> {
    let mut by_project: HashMap<&str, Vec<&Listed>> = HashMap::new();
    for entry in listed.iter().filter(|entry| entry.is_session()) {
        by_project
            .entry(entry.transcript.project())
            .or_default()
            .push(entry);
    }
    let mut groups: Vec<Group<'_>> = by_project
        .into_iter()
        .map(|(id, mut sessions)| {
            sessions.sort_by(|a, b| a.newest_first(b));
            Group { id, sessions }
        })
        .collect();
    groups.sort_by(|a, b| b.last_active().cmp(a.last_active()).then_with(|| a.id.cmp(b.id)));
    groups
}

impl Group<'_> {
    fn last_active(&self) -> &str {
        self.sessions.first().map_or("", |newest| newest.last_active())
    }

    pub(crate) fn project(&self) -> Result<Project> {
        let path = project_path(self.id, &self.sessions);
        let name = path
            .trim_end_matches(['/', '\\'])
            .rsplit(['/', '\\'])
            .next()
            .filter(|name| !name.is_empty());
        Ok(Project {
            id: ProjectId::parse(self.id)?,
            name: name.unwrap_or(&path).to_owned(),
            session_count: self.sessions.len(),
            last_active: self.last_active().to_owned(),
            path,
        })
    }
}

/// The working directory that gave the folder its name; a session may have begun in another one.
fn project_path(id: &str, sessions: &[&Listed]) -> String {
    let directories = || {
        sessions
            .iter()
            .filter_map(|entry| entry.digest.current().cwd.as_deref())
    };
    let exact = directories().find(|cwd| encoded(cwd) == id);
    exact
        .or_else(|| directories().next())
        .map_or_else(|| decoded(id), str::to_owned)
}

/// The name that the CLI gives to the folder of a working directory.
fn encoded(cwd: &str) -> String {
    cwd.chars()
        .map(|letter| {
            if letter.is_ascii_alphanumeric() {
                letter
            } else {
                '-'
            }
        })
        .collect()
}

/// The best guess where no line says what the working directory was.
fn decoded(id: &str) -> String {
    id.replace('-', "/")
}
