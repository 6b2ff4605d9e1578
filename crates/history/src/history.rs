//! [`History`]: every query on the transcripts.

use std::collections::{BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use rayon::prelude::*;

use crate::error::{HistoryError, Result};
use crate::index::Index;
use crate::list::card::Piece;
use crate::list::catalogue::{Catalogue, Group, Listed, groups};
use crate::model::{
    EntryPage, Facets, Include, MessagePage, Page, ProjectList, ProjectSessions, Session, SessionFilter,
    SessionPage,
};
use crate::read::place::{ProjectId, Projects, SessionId, Transcript};
use crate::read::record::millis;
use crate::read::transcript::{Transcripts, save_outlines};
use crate::search::build::{self, Cancel};
use crate::search::find::owner;

/// The history of one user. Cheap to share behind an `Arc`; every function blocks, so call them where that is allowed.
pub struct History {
    pub(crate) home: PathBuf,
    pub(crate) projects: Projects,
    pub(crate) index: Option<Index>,
    pub(crate) catalogue: Catalogue,
    pub(crate) transcripts: Transcripts,
    pub(crate) cancel: Cancel,
    /// Whether the index has everything that existed when this was opened.
    pub(crate) caught_up: AtomicBool,
}

/// The result of bringing the index up to date.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Indexed {
    /// The bytes of transcripts that were new.
    pub bytes: u64,
}

impl History {
    /// Reads the transcripts under `claude_home`, which need not exist yet, and never writes there. With an `index_dir`
    /// it keeps an index there; without one, or if the index can't be opened, everything but search works, but more
    /// slowly.
    pub fn open(claude_home: &Path, index_dir: Option<&Path>) -> Result<Self> {
        Ok(Self {
            home: claude_home.to_owned(),
            projects: Projects::new(claude_home),
            index: index_dir.and_then(open_index),
            catalogue: Catalogue::default(),
            transcripts: Transcripts::default(),
            cancel: Cancel::default(),
            caught_up: AtomicBool::new(false),
        })
    }

    /// The CLI's home.
    pub fn home(&self) -> &Path {
        &self.home
    }

    /// All projects, the most recently used first.
    pub fn projects(&self) -> Result<ProjectList> {
        Ok(ProjectList {
            projects: groups(&self.listed()?)
                .iter()
                .map(Group::project)
                .collect::<Result<_>>()?,
        })
    }

    /// The sessions of a project, newest first.
    pub fn sessions(&self, project: &ProjectId, page: Page) -> Result<SessionPage> {
        let files = self.projects.transcripts(project.as_str())?;
        session_page(self.refresh(files), page)
    }

    /// All projects, the most recently used first, each with all of its sessions, newest first, from one pass over the
    /// files.
    pub fn everything(&self) -> Result<Vec<ProjectSessions>> {
        let listed = self.listed()?;
        groups(&listed)
            .par_iter()
            .with_max_len(1)
            .map(Group::whole)
            .collect()
    }

    /// The sessions of all projects, newest first.
    pub fn all_sessions(&self, page: Page) -> Result<SessionPage> {
        session_page(self.listed()?, page)
    }

    /// The sessions that a filter admits, newest first.
    pub fn find_sessions(&self, filter: &SessionFilter, page: Page) -> Result<SessionPage> {
        let listed = match &filter.project {
            Some(project) => self.refresh(self.projects.transcripts(project.as_str())?),
            None => self.listed()?,
        };
        let mut sessions = Vec::new();
        for entry in listed.iter().filter(|entry| entry.is_session()) {
            sessions.extend(Some(entry.session()?).filter(|session| filter.admits(session)));
        }
        sessions.sort_by(|a, b| b.last_active.cmp(&a.last_active).then_with(|| a.id.cmp(&b.id)));
        let total = sessions.len();
        let sessions = sessions.drain(page.range(total)).collect();
        Ok(SessionPage { sessions, total })
    }

    /// All tools and models of the history, in order.
    pub fn facets(&self) -> Result<Facets> {
        let (mut tools, mut models) = (BTreeSet::new(), BTreeSet::new());
        for entry in self.listed()?.iter().filter(|entry| entry.is_session()) {
            let card = entry.digest.current();
            tools.extend(card.names(Piece::Tools).iter().map(str::to_owned));
            models.extend(card.names(Piece::Models).iter().map(str::to_owned));
        }
        Ok(Facets {
            tools: tools.into_iter().collect(),
            models: models.into_iter().collect(),
        })
    }

    /// The index of a message among those of its session. `None`: the message is not among them.
    pub fn position(&self, id: &SessionId, uuid: &str, include: Include) -> Result<Option<usize>> {
        self.transcripts.position(self, id, uuid, include)
    }

    /// One session with a page of its messages.
    pub fn messages(&self, id: &SessionId, page: Page, include: Include) -> Result<MessagePage> {
        self.transcripts.page(self, id, page, include)
    }

    /// One session with a page of its entries, in the form of a live session's events.
    pub fn entries(&self, id: &SessionId, page: Page, include: Include) -> Result<EntryPage> {
        self.transcripts.entries(self, id, page, include)
    }

    /// A large tool result that is stored in a file beside the session's transcript, by the name in `persisted_output`.
    pub fn tool_result(&self, id: &SessionId, name: &str) -> Result<std::fs::File> {
        self.projects.open_tool_result(&self.projects.session(id)?, name)
    }

    /// One session without its messages.
    pub fn session(&self, id: &SessionId) -> Result<Session> {
        self.find(id)?.session()
    }

    /// Every transcript directly in a project, with its digest.
    pub(crate) fn listed(&self) -> Result<Vec<Listed>> {
        // The folders and the index are different files, so both are read in parallel.
        let (files, ()) = rayon::join(
            || self.projects.all_transcripts(),
            || self.catalogue.prepare(self.index.as_ref()),
        );
        let listed = self.refresh(files?);
        self.catalogue.keep_only(self.index.as_ref(), &listed)?;
        Ok(listed)
    }

    pub(crate) fn refresh(&self, files: Vec<Transcript>) -> Vec<Listed> {
        self.catalogue.refresh(&self.projects, self.index.as_ref(), files)
    }

    /// The session's transcript and digest.
    pub(crate) fn find(&self, id: &SessionId) -> Result<Listed> {
        let transcript = self.projects.session(id)?;
        self.refresh(vec![transcript])
            .pop()
            .filter(Listed::is_session)
            .ok_or(HistoryError::NotFound)
    }

    /// All transcripts: those of sessions and of subagents, wherever they are.
    pub(crate) fn every_transcript(&self) -> Result<Vec<Transcript>> {
        let mut files = self.projects.all_transcripts()?;
        let mut subagents = Vec::new();
        for file in &files {
            subagents.extend(self.projects.subagents(file)?);
        }
        files.extend(subagents);
        Ok(files)
    }

    /// Brings the index up to date with the transcripts. It takes a while the first time, and milliseconds later; call
    /// it in the background, at the start and after changes. Without an index it does nothing. A damaged index is
    /// rebuilt.
    pub fn update_index(&self) -> Result<Indexed> {
        let Some(index) = &self.index else {
            return Ok(Indexed { bytes: 0 });
        };
        let mut files = self.every_transcript()?;
        // The list first: at the first start a user waits for it.
        self.sort_by_use(&mut files)?;
        save_outlines(self, &files);
        let built = build::build(index, &self.projects, files.clone(), &self.cancel);
        let bytes = match built {
            Err(error) if error.is_damage() => {
                index.mend_words(&error)?;
                build::build(index, &self.projects, files, &self.cancel)?
            }
            built => built?,
        };
        if !self.cancel.is_set() {
            self.caught_up.store(true, Ordering::Relaxed);
        }
        Ok(Indexed { bytes })
    }

    /// Sorts the transcripts by the last use of their conversations, the most recent last. The files' times alone would
    /// be wrong for copied files.
    fn sort_by_use(&self, files: &mut [Transcript]) -> Result<()> {
        let listed = self.listed()?;
        let used: HashMap<&str, i64> = listed
            .iter()
            .filter_map(|entry| {
                let time = millis(entry.last_active().as_bytes())?;
                Some((entry.transcript.path.as_str(), time))
            })
            .collect();
        files.sort_by_cached_key(|file| {
            let path = file.path.as_str();
            let used = used.get(path).or_else(|| used.get(owner(path).path.as_str()));
            let written = file.stamp.modified_ns;
            (used.copied().unwrap_or(written / 1_000_000), written)
        });
        Ok(())
    }

    /// Makes a running [`update_index`](Self::update_index) end soon, and later ones do nothing: for shutting down.
    pub fn stop_indexing(&self) {
        self.cancel.cancel();
    }

    /// Deletes the index and builds a new one, as happens automatically when damage is found.
    pub fn rebuild_index(&self) -> Result<Indexed> {
        if let Some(index) = &self.index {
            self.caught_up.store(false, Ordering::Relaxed);
            index.renew()?;
        }
        self.update_index()
    }
}

fn open_index(folder: &Path) -> Option<Index> {
    let opened = Index::open(folder);
    opened
        .inspect_err(
            |error| tracing::warn!(%error, "the index of the history can't be opened, so search is off"),
        )
        .ok()
}

fn session_page(listed: Vec<Listed>, page: Page) -> Result<SessionPage> {
    let mut sessions: Vec<Listed> = listed.into_iter().filter(Listed::is_session).collect();
    sessions.sort_by(Listed::newest_first);
    let total = sessions.len();
    let sessions = sessions[page.range(total)]
        .iter()
        .map(Listed::session)
        .collect::<Result<_>>()?;
    Ok(SessionPage { sessions, total })
}
