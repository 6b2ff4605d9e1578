//! The list of all sessions, kept up to date by reading only changed files.

use std::cell::RefCell;
use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rayon::prelude::*;

use crate::error::Result;
use crate::index::Index;
use crate::list::card::{Card, Piece};
use crate::list::digest::Digest;
use crate::model::{Project, ProjectSessions, Session};
use crate::read::follow::{Followed, follow};
use crate::read::lines::Buffer;
use crate::read::place::{ProjectId, Projects, SessionId, Transcript};

thread_local! {
    /// The read buffer of each thread of the pool.
    static BUFFER: RefCell<Buffer> = RefCell::default();
}

/// Runs `run` with this thread's read buffer.
pub(crate) fn with_buffer<T>(run: impl FnOnce(&mut Buffer) -> T) -> T {
    BUFFER.with(|buffer| match buffer.try_borrow_mut() {
        Ok(mut buffer) => run(&mut buffer),
        // Only if `run` itself calls this function again.
        Err(_) => run(&mut Buffer::default()),
    })
}

/// By the path of the transcript.
pub(crate) type Known = HashMap<Arc<str>, Arc<Followed<Card>>, BuildHasherDefault<PathHasher>>;

/// Paths are long, and every list looks up each of them: this hasher takes eight bytes at a time. It does not resist
/// crafted collisions, but an attacker who can create files here can do worse.
#[derive(Default)]
pub(crate) struct PathHasher(u64);

impl Hasher for PathHasher {
    fn write(&mut self, bytes: &[u8]) {
        let (words, rest) = bytes.as_chunks::<8>();
        let mut last = [0; 8];
        last[..rest.len()].copy_from_slice(rest);
        for word in words.iter().chain([&last]) {
            let mixed = (self.0 ^ u64::from_le_bytes(*word)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            self.0 = mixed ^ mixed >> 32;
        }
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

/// A transcript and its digest.
#[derive(Clone)]
pub(crate) struct Listed {
    pub(crate) transcript: Transcript,
    pub(crate) digest: Arc<Followed<Card>>,
}

/// If more than this many bytes are new, one caller at a time reads them: at the first start a request and the indexer
/// need the same list, and reading a gigabyte twice in parallel takes twice as long.
const MUCH: u64 = 64 << 20;

#[derive(Default)]
pub(crate) struct Catalogue {
    known: Mutex<State>,
    /// Held while [`MUCH`] is read. Never taken by a thread of the pool, which might be needed to finish the reading.
    reading: Mutex<()>,
}

#[derive(Default)]
struct State {
    digests: Known,
    /// Whether all digests of the index are in `digests`.
    has_all: bool,
}

impl Catalogue {
    /// Loads the digests of the index, so that no caller has to wait for them later.
    pub(crate) fn prepare(&self, index: Option<&Index>) {
        drop(self.all(index));
    }

    /// The state, with all digests of the index loaded.
    fn all(&self, index: Option<&Index>) -> MutexGuard<'_, State> {
        let mut state = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(index) = index.filter(|_| !state.has_all) {
            let State { digests, .. } = &mut *state;
            let loaded = index.load_all(|path, card| {
                // A digest that was read in the meantime is newer.
                if !digests.contains_key(path) {
                    digests.insert(path.into(), Arc::new(card));
                }
            });
            match loaded {
                Ok(()) => {}
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

    /// The state, with the digest of one transcript loaded: opening a session should not wait for the list.
    fn one(&self, index: Option<&Index>, path: &str) -> MutexGuard<'_, State> {
        let mut state = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if !state.has_all && !state.digests.contains_key(path) {
            let saved = index.and_then(|index| index.load::<Card>(path).ok().flatten());
            state
                .digests
                .extend(saved.map(|card| (path.into(), Arc::new(card))));
        }
        state
    }

    /// The current digests of these transcripts.
    pub(crate) fn refresh(
        &self,
        projects: &Projects,
        index: Option<&Index>,
        files: Vec<Transcript>,
    ) -> Vec<Listed> {
        let mut fresh = Vec::with_capacity(files.len());
        let mut stale = self.known_or_stale(index, files, &mut fresh);
        let size: u64 = stale.iter().map(|(_, transcript)| transcript.stamp.size).sum();
        let reading = (size >= MUCH && rayon::current_thread_index().is_none())
            .then(|| self.reading.lock().unwrap_or_else(PoisonError::into_inner));
        if reading.is_some() {
            // Another caller may have read them in the meantime.
            let files = stale.into_iter().map(|(_, transcript)| transcript).collect();
            stale = self.known_or_stale(index, files, &mut fresh);
        }
        if stale.is_empty() {
            return fresh;
        }
        let Ok(Some(root)) = projects.root() else {
            return fresh;
        };
        // The largest first, so that no thread is left with a large one at the end.
        stale.sort_by_key(|(_, transcript)| std::cmp::Reverse(transcript.stamp.size));
        let read: Vec<Listed> = stale
            .into_par_iter()
            .with_max_len(1)
            .filter_map(|(old, transcript)| {
                let (mut file, stamp) = root.open(&transcript.path).ok()?;
                let old = old.map(|old| old.map(Card::digest));
                match with_buffer(|buffer| follow::<Digest>(&mut file, stamp, old, buffer)) {
                    Ok(digest) => Some(Listed {
                        transcript: Transcript { stamp, ..transcript },
                        digest: Arc::new(digest.map(Card::of)),
                    }),
                    Err(error) => {
                        tracing::warn!(%error, "a transcript could not be read");
                        None
                    }
                }
            })
            .collect();
        let mut state = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        for listed in &read {
            state
                .digests
                .insert(listed.transcript.path.as_str().into(), Arc::clone(&listed.digest));
        }
        drop(state);
        drop(reading);
        if let Some(index) = index {
            let parts = read
                .iter()
                .map(|listed| (listed.transcript.path.as_str(), &*listed.digest));
            if let Err(error) = index.save(parts) {
                tracing::warn!(%error, "the list of sessions could not be saved in the index");
            }
        }
        fresh.extend(read);
        fresh
    }

    /// Adds the transcripts with current digests to `fresh`, and returns the others with their stale digests.
    fn known_or_stale(
        &self,
        index: Option<&Index>,
        files: Vec<Transcript>,
        fresh: &mut Vec<Listed>,
    ) -> Vec<(Option<Arc<Followed<Card>>>, Transcript)> {
        let mut stale = Vec::new();
        let state = match files.as_slice() {
            [only] => self.one(index, &only.path),
            _ => self.all(index),
        };
        for transcript in files {
            match state.digests.get(transcript.path.as_str()) {
                Some(digest) if digest.is_as_of(transcript.stamp) => {
                    fresh.push(Listed {
                        digest: Arc::clone(digest),
                        transcript,
                    });
                }
                old => stale.push((old.cloned(), transcript)),
            }
        }
        stale
    }

    /// The known digests of all transcripts, by path, without checking whether they are current.
    pub(crate) fn by_path(&self, index: Option<&Index>) -> Known {
        self.all(index).digests.clone()
    }

    /// Removes all transcripts but these, which still exist.
    pub(crate) fn keep_only(&self, index: Option<&Index>, listed: &[Listed]) -> Result<()> {
        let mut state = self.all(index);
        // All of these are known. If no others are, which is nearly always so, there is nothing to remove.
        if state.digests.len() <= listed.len() {
            return Ok(());
        }
        let present: HashSet<&str> = listed
            .iter()
            .map(|entry| entry.transcript.path.as_str())
            .collect();
        let gone: Vec<Arc<str>> = state
            .digests
            .keys()
            .filter(|path| !present.contains(&***path))
            .cloned()
            .collect();
        for path in &gone {
            state.digests.remove(path);
        }
        drop(state);
        match index {
            Some(index) if !gone.is_empty() => index.forget::<Card>(&gone),
            _ => Ok(()),
        }
    }
}

impl Listed {
    /// Whether it belongs in the list of sessions: it has messages and is not a subagent's.
    pub(crate) fn is_session(&self) -> bool {
        !self.transcript.is_subagent() && self.digest.current().message_count > 0
    }

    pub(crate) fn last_active(&self) -> &str {
        let card = self.digest.current();
        card.get(Piece::LastTime).unwrap_or_default()
    }

    pub(crate) fn newest_first(&self, other: &Self) -> std::cmp::Ordering {
        let by_time = other.last_active().cmp(self.last_active());
        by_time.then_with(|| self.transcript.path.cmp(&other.transcript.path))
    }

    pub(crate) fn session(&self) -> Result<Session> {
        self.session_of(ProjectId::parse(self.transcript.project())?)
    }

    fn session_of(&self, project: ProjectId) -> Result<Session> {
        let card = self.digest.current();
        let text = |piece| card.text(piece);
        let begun = text(Piece::Created).or_else(|| text(Piece::FirstTime));
        Ok(Session {
            id: SessionId::parse(self.transcript.stem())?,
            title: card.title(),
            project_path: text(Piece::Cwd).unwrap_or_else(|| decoded(project.as_str()).into()),
            timestamp: begun.unwrap_or_default(),
            message_count: card.message_count,
            tools_used: card.names(Piece::Tools),
            files_changed: card.files_changed(),
            project,
            last_active: text(Piece::LastTime).unwrap_or_default(),
            size_bytes: self.transcript.stamp.size,
            models: card.names(Piece::Models),
            first_prompt: text(Piece::Prompt),
            custom_title: text(Piece::CustomTitle),
            summary: text(Piece::Summary).or_else(|| text(Piece::AiTitle)),
            git_branch: text(Piece::GitBranch),
            cli_version: text(Piece::Version),
            damaged_lines: card.damaged,
            unknown_lines: card.unknown(),
            archived: false,
            live: false,
            driver: None,
        })
    }
}

/// The sessions of one project, newest first.
pub(crate) struct Group<'a> {
    id: &'a str,
    sessions: Vec<&'a Listed>,
}

/// These sessions by project, the most recently used project first.
pub(crate) fn groups(listed: &[Listed]) -> Vec<Group<'_>> {
    let mut groups: Vec<Group<'_>> = Vec::new();
    let mut places: HashMap<&str, usize> = HashMap::new();
    for entry in listed.iter().filter(|entry| entry.is_session()) {
        let id = entry.transcript.project();
        // Nearly always the project of the previous one.
        if let Some(last) = groups.last_mut().filter(|last| last.id == id) {
            last.sessions.push(entry);
            continue;
        }
        let place = *places.entry(id).or_insert(groups.len());
        match groups.get_mut(place) {
            Some(group) => group.sessions.push(entry),
            None => groups.push(Group {
                id,
                sessions: vec![entry],
            }),
        }
    }
    for group in &mut groups {
        group.sessions.sort_by(|a, b| a.newest_first(b));
    }
    groups.sort_by(|a, b| b.last_active().cmp(a.last_active()).then_with(|| a.id.cmp(b.id)));
    groups
}

impl Group<'_> {
    fn last_active(&self) -> &str {
        self.sessions.first().map_or("", |newest| newest.last_active())
    }

    /// All of its sessions.
    pub(crate) fn whole(&self) -> Result<ProjectSessions> {
        let project = self.project()?;
        let sessions = self.sessions.iter();
        let sessions = sessions
            .map(|entry| entry.session_of(project.id.clone()))
            .collect::<Result<_>>()?;
        Ok(ProjectSessions { project, sessions })
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
            .filter_map(|entry| entry.digest.current().get(Piece::Cwd))
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

/// The best guess if no line has the working directory.
fn decoded(id: &str) -> String {
    id.replace('-', "/")
}
